# SPDX-License-Identifier: Apache-2.0
"""Topologies from what people have at hand, and what topologies say of themselves."""

from ucm_proxy._native import InvalidParamError


def topology(store, *, namespace=None, credential=None, fabric=None):
    """store is "HOST:PORT", a list of these, or a topology already."""
    options = {"namespace": namespace, "credential": credential, "fabric": fabric}
    options = {key: value for key, value in options.items() if value is not None}
    if isinstance(store, dict):
        if options:
            raise ValueError(f"{', '.join(options)}: belongs into the topology's config")
        return store
    servers = [store] if isinstance(store, str) else list(store)
    return {"type": "store", "store": "remote", "config": {"servers": servers, **options}}


def block_bytes(scheduler):
    """Bytes of a block, from the description of a topology."""
    found = _find(scheduler.describe(), "block_bytes")
    if found is None:
        raise InvalidParamError("the topology does not say its block_bytes; use the interfaces directly")
    return found


def _find(description, key):
    """The first value of a key in a description and those below it."""
    if isinstance(description, dict):
        if key in description:
            return description[key]
        description = description.values()
    elif not isinstance(description, list):
        return None
    for value in description:
        found = _find(value, key)
        if found is not None:
            return found
    return None
