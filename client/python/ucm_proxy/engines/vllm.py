# SPDX-License-Identifier: Apache-2.0
"""vLLM: a secondary tier of the tiering offloading connector.

Interface read: vllm/v1/kv_offload/tiering (base, factory, fs/manager) of v0.22 to mid 2026, commits
041410b9, 1d0a6c68 and 033af9c5; where versions differ (block_ids or chunk_ids of a job, JobResult with or
without successful_keys, get_finished or get_finished_jobs) both are served. vLLM loads the class itself:

    --kv-transfer-config '{"kv_connector": "OffloadingConnector", "kv_role": "kv_both",
      "kv_connector_extra_config": {"spec_name": "TieringOffloadingSpec", "cpu_bytes_to_use": 10737418240,
        "secondary_tiers": [{"type": "UcmSecondaryTier", "module_path": "ucm_proxy.engines.vllm",
                             "store": ["memory-node-1:7470", "memory-node-2:7470"]}]}}'

A row of vLLM's CPU cache is one block: it holds the parts of all tensor-parallel ranks, so that it is whole
or absent for all of them. Set PYTHONHASHSEED alike on all instances, or their hashes have nothing in common.
An OffloadingSpec or a connector of our own, which would move blocks straight from the GPU, is not offered: the
two interfaces that one would be made of are shown by help(ucm_proxy).
"""

import dataclasses

from ucm_proxy._native import address_of
from ucm_proxy._topology import topology
from ucm_proxy.engines._background import Background
from ucm_proxy.engines._keys import Keys, Layout

_LOOKUPS_AT_ONCE = 512
_RETRY_LIMIT = 1_000_000  # answers kept; requests that never finish must not fill the memory


class SecondaryTier:
    """What the tier does, in terms of three types of vLLM that are handed in.

    results: has HIT, MISS and RETRY. job_result, request_context: made as vLLM's JobResult and
    RequestOffloadingContext are. Every method returns at once, but drain_jobs() and shutdown().
    """

    def __init__(self, view, layout, store, *, results, job_result, request_context, namespace=None,
                 credential=None, fabric=None, limit=4096, timeout_ms=0, ttl_ms=None):
        address, length = address_of(view)
        self._row_bytes = memoryview(view).strides[0]
        self._address = address
        self._rows = length // self._row_bytes
        self._keys = Keys(layout)
        self._results = results
        self._job_result = job_result
        self._names_keys = _takes(job_result, "successful_keys")
        self._request_context = request_context
        self._ttl_ms = ttl_ms
        self._background = Background(
            topology(store, namespace=namespace, credential=credential, fabric=fabric),
            memory=[(address, length)], limit=limit, timeout_ms=timeout_ms, name="ucm-vllm")
        if self._background.block_bytes < self._row_bytes:
            stored = self._background.block_bytes
            self._background.close()
            raise ValueError(f"the store's blocks have {stored} bytes, a row of the CPU cache "
                             f"{self._row_bytes}: give the namespace block_bytes of at least that")
        self._answers = {}  # request → key → a result that stays, RETRY while it is asked
        self._ask = {}  # request → keys to be asked at the end of the step
        self._ended = []

    # Lookups: asked in one batch per step, answered from the second call on.

    def lookup(self, key, req_context):
        """HIT, MISS, or RETRY while the answer is on its way."""
        answers = self._answers.setdefault(req_context.req_id, {})
        answer = answers.get(key)
        if answer is None:
            if sum(map(len, self._answers.values())) >= _RETRY_LIMIT:
                return self._results.MISS
            answers[key] = self._results.RETRY
            self._ask.setdefault(req_context.req_id, []).append(key)
            answer = self._results.RETRY
        if answer is self._results.RETRY:
            self._collect()
            answer = answers.get(key, answer)
        return answer

    def on_schedule_end(self, context=None):
        """The step's lookups go out."""
        self._flush()

    def on_new_request(self, req_context):
        """No wish of ours."""
        return self._request_context()

    get_request_offloading_context = on_new_request

    def on_request_finished(self, req_context):
        """Forget what was answered."""
        self._answers.pop(req_context.req_id, None)
        self._ask.pop(req_context.req_id, None)

    request_finished = on_request_finished

    def _flush(self):
        ask, self._ask = self._ask, {}
        for request, keys in ask.items():
            for start in range(0, len(keys), _LOOKUPS_AT_ONCE):
                part = keys[start:start + _LOOKUPS_AT_ONCE]
                self._background.lookup([self._keys.part(key, 0) for key in part], tag=(request, part))

    # Jobs

    def submit_store(self, job_metadata):
        """Rows to the store; those that are there already cost nothing."""
        self._submit(self._background.put, job_metadata, ttl_ms=self._ttl_ms)

    def submit_load(self, job_metadata):
        """Blocks to rows."""
        self._submit(self._background.get, job_metadata)

    def _submit(self, call, job, **options):
        rows = getattr(job, "chunk_ids", None)
        rows = [int(row) for row in (job.block_ids if rows is None else rows)]
        keys = list(job.keys)
        if len(rows) != len(keys) or any(not 0 <= row < self._rows for row in rows):
            self._ended.append((job.job_id, keys, [False] * len(keys)))
            return
        call([self._keys.part(key, 0) for key in keys],
             [[(self._address + row * self._row_bytes, self._row_bytes)] for row in rows],
             tag=(job.job_id, keys), **options)

    def get_finished_jobs(self):
        """Jobs that ended; with the keys that were moved, where vLLM wants to know."""
        self._flush()  # versions without on_schedule_end
        self._collect()
        ended, self._ended = self._ended, []
        return [self._result(*job) for job in ended]

    get_finished = get_finished_jobs

    def _result(self, job_id, keys, moved):
        if self._names_keys and not all(moved):
            done = [key for key, ok in zip(keys, moved) if ok]
            return self._job_result(job_id=job_id, success=False, successful_keys=done)
        return self._job_result(job_id=job_id, success=all(moved))

    def _collect(self):
        for ticket in self._background.finished():
            if ticket.kind == "lookup":
                request, keys = ticket.tag
                answers = self._answers.get(request, {})
                for key, hit in zip(keys, ticket.hits):
                    if key in answers:
                        answers[key] = self._results.HIT if hit else self._results.MISS
            elif ticket.tag is not None:
                self._ended.append((*ticket.tag, ticket.hits))

    def touch(self, keys, req_context=None):
        """Used just now."""
        self._background.touch([self._keys.part(key, 0) for key in keys], ttl_ms=self._ttl_ms)

    def metrics(self):
        """Counts since the start: calls, keys and hits of lookups, gets and puts, errors."""
        return {**self._background.counters, "under_way": self._background.under_way}

    def drain_jobs(self):
        """Wait until no job is under way; their deadlines bound it."""
        self._background.idle()
        self._collect()

    def shutdown(self):
        """End what is under way and give everything back: vLLM unmaps its memory afterwards."""
        self._background.close()


def _takes(kind, field):
    """Whether a dataclass has a field."""
    return dataclasses.is_dataclass(kind) and field in {one.name for one in dataclasses.fields(kind)}


def layout_of(spec, row_bytes):
    """The layout that a spec of vLLM describes; whatever could change the bytes is in it."""
    config = getattr(spec, "vllm_config", None) or spec.config.vllm_config
    model, cache, parallel = config.model_config, config.cache_config, config.parallel_config
    groups = getattr(getattr(spec, "kv_cache_config", None), "kv_cache_groups", ())
    world = ("tensor_parallel_size", "pipeline_parallel_size", "decode_context_parallel_size",
             "prefill_context_parallel_size")
    extra = [("cache_dtype", str(getattr(cache, "cache_dtype", ""))),
             ("factor", str(getattr(spec, "block_size_factor", 1))),
             ("groups", ";".join(repr(getattr(group, "kv_cache_spec", group)) for group in groups))]
    extra += [(name, str(getattr(parallel, name, 1))) for name in world]
    return Layout(model=str(model.model), revision=str(getattr(model, "revision", "") or ""),
                  dtype=str(model.dtype), layout="vllm-row", page_tokens=int(cache.block_size),
                  block_bytes=row_bytes, extra=tuple(extra))


def make_tier(base, kv_offload):
    """The class that vLLM loads, from its own base class and the module with its types."""

    class UcmSecondaryTier(SecondaryTier, base):
        """Blocks of vLLM in the memory of ucm's servers."""

        def __init__(self, offloading_spec, primary_kv_view, tier_type, store, **options):
            base.__init__(self, offloading_spec, primary_kv_view, tier_type)
            view = memoryview(primary_kv_view)
            SecondaryTier.__init__(
                self, view, layout_of(offloading_spec, view.strides[0]), store,
                results=kv_offload.LookupResult, job_result=kv_offload.JobResult,
                request_context=kv_offload.RequestOffloadingContext, **options)

    return UcmSecondaryTier


def __getattr__(name):
    if name != "UcmSecondaryTier":
        raise AttributeError(name)
    import types

    from vllm.v1.kv_offload import base
    from vllm.v1.kv_offload.tiering import base as tiering

    kinds = types.SimpleNamespace(LookupResult=base.LookupResult, JobResult=tiering.JobResult,
                                  RequestOffloadingContext=base.RequestOffloadingContext)
    made = make_tier(tiering.SecondaryTierManager, kinds)
    globals()[name] = made
    return made
