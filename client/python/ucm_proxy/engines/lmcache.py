# SPDX-License-Identifier: Apache-2.0
"""LMCache: a native plugin for its second level.

Interface read: lmcache/v1/distributed/l2_adapters/native_plugin_l2_adapter.py at commit f9f99a82 and
native_connector_l2_adapter.py at 3fd3000f. LMCache loads the class itself, from an L2 adapter of the type

    {"type": "native_plugin", "module_path": "ucm_proxy.engines.lmcache", "class_name": "UcmConnector",
     "adapter_params": {"store": ["memory-node-1:7470"], "model": "llama", "revision": "main",
                        "dtype": "bfloat16", "chunk_tokens": 256}}

Its keys name chunk, worker and world; each worker stores its own chunks, and LMCache itself counts a prefix
only where all workers have theirs. Leave max_capacity_gb at 0: the servers evict by their own policy, and
nothing is deleted from here.
"""

import itertools

from ucm_proxy._native import address_of
from ucm_proxy._topology import topology
from ucm_proxy.engines._background import Background
from ucm_proxy.engines._keys import Keys, Layout


class UcmConnector:
    """Batches of chunks by key; every call returns at once, and its future ends in drain_completions()."""

    def __init__(self, store, model, dtype, chunk_tokens, revision="", namespace=None, credential=None,
                 fabric=None, limit=4096, timeout_ms=0, ttl_ms=None):
        self._background = Background(
            topology(store, namespace=namespace, credential=credential, fabric=fabric), limit=limit,
            timeout_ms=timeout_ms, name="ucm-lmcache")
        self._keys = Keys(Layout(model=model, revision=revision, dtype=dtype, layout="lmcache-chunk",
                                 page_tokens=chunk_tokens, block_bytes=self._background.block_bytes))
        self._ttl_ms = ttl_ms
        self._futures = itertools.count(1)
        self._ended = []  # answered without asking anybody

    def event_fd(self):
        """Readable while drain_completions() has something."""
        return self._background.fileno()

    def submit_batch_get(self, keys, memoryviews):
        """Load chunks into writable views of the length that was stored. Returns the future's number."""
        if any(memoryview(view).readonly for view in memoryviews):
            raise ValueError("submit_batch_get needs writable memory")
        return self._move(self._background.get, keys, memoryviews)

    def submit_batch_set(self, keys, memoryviews):
        """Store chunks; those that are there already cost nothing."""
        return self._move(self._background.put, keys, memoryviews, ttl_ms=self._ttl_ms)

    def submit_batch_exists(self, keys):
        """Which chunks are there."""
        future = next(self._futures)
        self._background.lookup(self._names(keys), tag=(future, None))
        return future

    def submit_batch_delete(self, keys):
        """Not offered: the future ends as failed, with no key deleted."""
        future = next(self._futures)
        self._ended.append((future, False, "ucm evicts by itself: nothing was deleted", [False] * len(keys)))
        self._background.announce()
        return future

    def drain_completions(self):
        """(future, ok, error text, a bool per key) of what ended since the last call."""
        completions, self._ended = self._ended, []
        for ticket in self._background.finished():
            future, views = ticket.tag
            ok = ticket.error is None and (views is None or all(ticket.hits))
            text = "" if ok else str(ticket.error or "not all chunks were moved")
            completions.append((future, ok, text, ticket.hits))
        return completions

    def metrics(self):
        """Counts since the start: calls, keys and hits, errors."""
        return {**self._background.counters, "under_way": self._background.under_way}

    def close(self):
        """End what is under way (deadlines bound it), then give everything back."""
        self._background.close()

    def _names(self, keys):
        return [self._keys.part(key, 0) for key in keys]

    def _move(self, call, keys, views, **options):
        if len(keys) != len(views):
            raise ValueError(f"{len(keys)} keys and {len(views)} views")
        future = next(self._futures)
        # Kept open until the ticket ends: jobs know addresses only, and owners may release or resize.
        views = [memoryview(view) for view in views]
        call(self._names(keys), [[address_of(view)] for view in views], tag=(future, views), **options)
        return future
