# SPDX-License-Identifier: Apache-2.0
"""vLLM's tiering offloading of June 2026: types, base class, and a scheduler that drives a tier."""

import abc
import collections
import dataclasses
import enum
import types

import numpy


class LookupResult(enum.Enum):
    """Answers of a lookup."""

    MISS = enum.auto()
    HIT = enum.auto()
    HIT_PENDING = enum.auto()
    RETRY = enum.auto()


@dataclasses.dataclass
class ReqContext:
    """A request."""

    req_id: str
    kv_transfer_params: dict = None


@dataclasses.dataclass
class RequestOffloadingContext:
    """A tier's wish for a request."""


@dataclasses.dataclass
class JobMetadata:
    """A transfer between the CPU cache and a tier."""

    job_id: int
    keys: collections.abc.Collection
    block_ids: numpy.ndarray
    is_promotion: bool
    req_context: ReqContext


@dataclasses.dataclass
class JobResult:
    """How it ended; earlier versions have no successful_keys."""

    job_id: int
    success: bool
    successful_keys: collections.abc.Collection = None


class SecondaryTierManager(abc.ABC):
    """Base class of tiers; none of the first four methods may block."""

    def __init__(self, offloading_spec, primary_kv_view, tier_type):
        self.tier_type = tier_type

    @abc.abstractmethod
    def lookup(self, key, req_context): ...

    @abc.abstractmethod
    def submit_store(self, job_metadata): ...

    @abc.abstractmethod
    def submit_load(self, job_metadata): ...

    @abc.abstractmethod
    def get_finished_jobs(self): ...


def spec(**changes):
    """An OffloadingSpec, as far as tiers look at it."""
    values = {"model": "double/model", "revision": "main", "dtype": "float16", "block_size": 16,
              "tensor_parallel_size": 2, **changes}
    return types.SimpleNamespace(
        vllm_config=types.SimpleNamespace(
            model_config=types.SimpleNamespace(**{k: values[k] for k in ("model", "revision", "dtype")}),
            cache_config=types.SimpleNamespace(block_size=values["block_size"], cache_dtype="auto"),
            parallel_config=types.SimpleNamespace(tensor_parallel_size=values["tensor_parallel_size"])),
        kv_cache_config=types.SimpleNamespace(kv_cache_groups=[]), block_size_factor=1)


class Scheduler:
    """The engine's side: steps that look up, load and store, without ever waiting in a call."""

    def __init__(self, tier, rows, slowest=None):
        self.tier = tier
        self.free = collections.deque(range(rows))
        self.job_ids = iter(range(1, 1 << 30))
        self.jobs = {}
        self.slowest = slowest  # called with the seconds that each call took

    def timed(self, call, *arguments):
        """One call into the tier."""
        import time
        start = time.monotonic()
        result = call(*arguments)
        if self.slowest is not None:
            self.slowest(time.monotonic() - start)
        return result

    def step_lookup(self, context, keys):
        """Ask once for a prefix; the number of hits, or None where the tier wants another step."""
        hits = 0
        answer = LookupResult.MISS
        for key in keys:
            answer = self.timed(self.tier.lookup, key, context)
            if answer is not LookupResult.HIT:
                break
            hits += 1
        if answer is LookupResult.RETRY:
            for key in keys[hits + 1:]:  # all of a request's keys are asked in one step
                self.timed(self.tier.lookup, key, context)
        self.timed(self.tier.on_schedule_end, None)
        return None if answer is LookupResult.RETRY else hits

    def submit(self, kind, context, keys):
        """Start a store or load of keys in free rows; the job's rows."""
        rows = [self.free.popleft() for _ in keys]
        job = JobMetadata(next(self.job_ids), keys, numpy.array(rows), kind == "load", context)
        self.jobs[job.job_id] = rows
        self.timed(getattr(self.tier, f"submit_{kind}"), job)
        return job.job_id, rows

    def finished(self):
        """Results by job; rows are free again."""
        results = {result.job_id: result for result in self.timed(self.tier.get_finished_jobs)}
        for job_id in results:
            self.free.extend(self.jobs.pop(job_id))
        return results
