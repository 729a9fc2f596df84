# SPDX-License-Identifier: Apache-2.0
"""LMCache's native plugin loading of June 2026, and the wrapper that drives a connector by its descriptor."""

import importlib
import select
import time

NEEDED = ("event_fd", "submit_batch_get", "submit_batch_set", "submit_batch_exists", "drain_completions",
          "close")


def load(config):
    """Make the connector that an adapter's configuration names."""
    kind = getattr(importlib.import_module(config["module_path"]), config["class_name"])
    connector = kind(**config.get("adapter_params", {}))
    missing = [name for name in NEEDED if not callable(getattr(connector, name, None))]
    if missing:
        raise TypeError(f"connector lacks {missing}")
    return connector


class Wrapper:
    """Waits for futures as LMCache's poller does: descriptor, then drain."""

    def __init__(self, connector):
        self.connector = connector
        self.done = {}

    def result(self, future, seconds=30):
        """(ok, error, flags) of a future."""
        poller = select.poll()
        poller.register(self.connector.event_fd(), select.POLLIN)
        limit = time.monotonic() + seconds
        while future not in self.done:
            if time.monotonic() > limit:
                raise AssertionError(f"future {future} did not end")
            poller.poll(100)
            for number, ok, error, flags in self.connector.drain_completions():
                assert number not in self.done, "a future ended twice"
                self.done[number] = (ok, error, flags)
        return self.done.pop(future)
