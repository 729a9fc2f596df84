# SPDX-License-Identifier: Apache-2.0
"""The tier of vLLM, driven by the double of its scheduler; with the real vLLM where it is installed."""

import importlib.util
import os
import signal
import time

import harness
import numpy
import pytest
import ucm_proxy as ucm
from conftest import BLOCK, remote
from doubles import vllm_2026_06 as vllm
from ucm_proxy.engines.vllm import layout_of, make_tier

ROWS = 64
TIER = make_tier(vllm.SecondaryTierManager, vllm)


class Engine:
    """A CPU cache, a tier over it, and a scheduler."""

    def __init__(self, store, spec=None, **options):
        self.memory = ucm.Memory(ROWS * BLOCK)
        self.view = memoryview(self.memory).cast("B", (ROWS, BLOCK))
        self.rows = numpy.frombuffer(self.memory, numpy.uint8).reshape(ROWS, BLOCK)
        self.calls = []
        self.tier = TIER(spec or vllm.spec(), self.view, "UcmSecondaryTier", store, **options)
        self.scheduler = vllm.Scheduler(self.tier, ROWS, self.calls.append)

    def prefix(self, request, keys, seconds=30):
        """Hits of a prefix; the steps that RETRY costs are counted in self.retries."""
        context = vllm.ReqContext(request)
        self.tier.on_new_request(context)
        self.retries = 0
        limit = time.monotonic() + seconds * harness.PATIENCE
        while (hits := self.scheduler.step_lookup(context, keys)) is None:
            assert time.monotonic() < limit, "RETRY without end"
            self.retries += 1
            time.sleep(0.001)
        self.tier.on_request_finished(context)
        return hits

    def run(self, kind, keys, content=None, seconds=30):
        """A job from start to end: its result and the content of its rows."""
        if content is not None:
            for row, data in zip(list(self.scheduler.free), content):
                self.rows[row] = numpy.frombuffer(data, numpy.uint8)
        job_id, rows = self.scheduler.submit(kind, vllm.ReqContext("job"), keys)
        limit = time.monotonic() + seconds * harness.PATIENCE
        while job_id not in (results := self.scheduler.finished()):
            assert time.monotonic() < limit, f"{kind} did not end"
            time.sleep(0.001)
        return results[job_id], [self.rows[row].tobytes() for row in rows]


def keys_of(count, first=0):
    """Keys like vLLM's: a hash and the number of the group."""
    return [n.to_bytes(32, "big") + bytes(4) for n in range(first, first + count)]


def blocks(count):
    """Content of rows."""
    return [os.urandom(BLOCK) for _ in range(count)]


def test_hit_miss_and_partial_hit(server):
    """What one instance stores another one finds and loads."""
    content = blocks(8)
    one, two = Engine(remote(server)), Engine(remote(server))
    assert one.prefix("r0", keys_of(8)) == 0 and one.retries > 0
    assert one.run("store", keys_of(8), content)[0].success
    assert two.prefix("r1", keys_of(10)) == 8
    assert two.prefix("r2", keys_of(4, 6)) == 2
    result, rows = two.run("load", keys_of(8))
    assert result.success and rows == content
    two.tier.touch(keys_of(8), vllm.ReqContext("r1"))
    assert two.tier.metrics()["get_hits"] == 8
    server.quiet()
    one.tier.shutdown()
    two.tier.shutdown()


def test_a_load_of_what_is_gone_fails_with_the_keys_that_came(server):
    """Partial success is told where vLLM can hear it."""
    engine = Engine(remote(server))
    engine.run("store", keys_of(2), blocks(2))
    result, _ = engine.run("load", keys_of(4))
    assert not result.success and list(result.successful_keys) == keys_of(2)
    engine.tier.shutdown()


def test_results_of_older_versions_have_no_keys(server):
    """JobResult(job_id, success), block ids that are lists, get_finished."""
    import dataclasses

    @dataclasses.dataclass
    class OldResult:
        job_id: int
        success: bool

    types = type("types", (), {"LookupResult": vllm.LookupResult, "JobResult": OldResult,
                               "RequestOffloadingContext": vllm.RequestOffloadingContext})
    engine = Engine(remote(server))
    old = make_tier(vllm.SecondaryTierManager, types)(vllm.spec(), engine.view, "x", remote(server))
    old.submit_load(vllm.JobMetadata(1, keys_of(1), [0], True, None))
    harness.eventually(lambda: old.get_finished() == [OldResult(1, False)], "the job ends")
    old.shutdown()
    engine.tier.shutdown()


def test_a_stopped_server_makes_no_call_wait(server):
    """SIGSTOP: the engine gets RETRY, its jobs end by their deadline, and after SIGCONT there are hits."""
    engine = Engine(remote(server, rpc_timeout="1s", timeout_ms=2000))
    assert engine.run("store", keys_of(4), blocks(4))[0].success
    engine.calls.clear()
    harness.stand_still(server.process.pid)
    context = vllm.ReqContext("stopped")
    first = engine.scheduler.step_lookup(context, keys_of(4))
    job_id, _ = engine.scheduler.submit("load", context, keys_of(4))
    assert first is None and engine.scheduler.step_lookup(context, keys_of(4)) is None
    assert engine.prefix("waits", keys_of(4, 100)) == 0  # in the end a miss
    assert engine.retries > 50  # the engine went on all the time
    ended = {}
    harness.eventually(lambda: ended.update(engine.scheduler.finished()) or job_id in ended, "the load ends")
    assert not ended[job_id].success
    assert max(engine.calls) < 0.25 * harness.PATIENCE
    os.kill(server.process.pid, signal.SIGCONT)
    harness.eventually(lambda: engine.prefix(f"again {time.monotonic()}", keys_of(4)) == 4, "hits come back")
    engine.tier.shutdown()


def test_a_server_killed_in_the_middle_of_a_batch(servers):
    """Its keys fail, the other server's do not; the prefix ends at the first that is lost."""
    engine = Engine(remote(*servers, rpc_timeout="500ms", timeout_ms=3000))
    content = blocks(32)
    job_id, _ = engine.scheduler.submit("store", vllm.ReqContext("r"), keys_of(32))
    servers[0].kill()
    harness.eventually(lambda: job_id in engine.scheduler.finished(), "the store ends")
    engine.run("store", keys_of(16, 50), content[:16])
    found = [engine.prefix(f"k{n}", keys_of(1, 50 + n)) for n in range(16)]
    assert any(found)
    present = [n for n in range(16) if found[n]]
    result, rows = engine.run("load", [keys_of(1, 50 + n)[0] for n in present])
    assert result.success and rows == [content[n] for n in present]
    engine.tier.shutdown()


def test_shutdown_with_jobs_under_way(server):
    """The server is stopped; shutdown ends by the jobs' deadline, and vLLM may free its memory."""
    engine = Engine(remote(server, rpc_timeout="500ms", timeout_ms=1000))
    harness.stand_still(server.process.pid)
    for n in range(8):
        engine.scheduler.submit("store" if n % 2 else "load", vllm.ReqContext("r"), keys_of(4, n * 4))
    start = time.monotonic()
    engine.tier.shutdown()
    assert time.monotonic() - start < 30 * harness.PATIENCE
    assert len(engine.scheduler.finished()) == 8
    os.kill(server.process.pid, signal.SIGCONT)


def test_drain_waits_for_jobs(server):
    """After it every job has its result."""
    engine = Engine(remote(server))
    jobs = [engine.scheduler.submit("store", vllm.ReqContext("r"), keys_of(4, n * 4))[0] for n in range(10)]
    engine.tier.drain_jobs()
    assert set(engine.scheduler.finished()) == set(jobs)
    engine.tier.shutdown()


@pytest.mark.parametrize("change", [{"model": "other"}, {"revision": "next"}, {"dtype": "bfloat16"},
                                    {"block_size": 32}, {"tensor_parallel_size": 4}])
def test_deployments_that_differ_share_nothing(server, change):
    """Whatever changes the bytes changes the keys."""
    one, two = Engine(remote(server)), Engine(remote(server), vllm.spec(**change))
    one.run("store", keys_of(2), blocks(2))
    assert one.prefix("r", keys_of(2)) == 2 and two.prefix("r", keys_of(2)) == 0
    one.tier.shutdown()
    two.tier.shutdown()


def test_wrong_jobs_and_stores_are_told(server, tmp_path):
    """Rows outside of the cache end as failed; blocks that are too small are refused at the start."""
    engine = Engine(remote(server))
    for rows in ([ROWS], [-1], [0, 1]):
        engine.tier.submit_load(vllm.JobMetadata(9, keys_of(1), numpy.array(rows), True, None))
        assert [result.success for result in engine.tier.get_finished_jobs()] == [False]
    engine.tier.shutdown()
    small = harness.Server(tmp_path, block_bytes=BLOCK // 2, capacity_blocks=16)
    with pytest.raises(ValueError, match="block_bytes"):
        Engine(remote(small))
    small.stop()


def test_answers_do_not_outlive_their_request(server):
    """Forgotten with the request, also when the answer comes later."""
    engine = Engine(remote(server))
    for n in range(100):
        context = vllm.ReqContext(f"r{n}")
        engine.scheduler.step_lookup(context, keys_of(10, n))
        engine.tier.on_request_finished(context)
    engine.tier.drain_jobs()
    engine.tier.get_finished_jobs()
    assert not engine.tier._answers and not engine.tier._ask
    engine.tier.shutdown()


@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed")
def test_the_real_base_class():
    """Opt-in: on machines that have vLLM, the class is made of its own base class."""
    from ucm_proxy.engines.vllm import UcmSecondaryTier
    from vllm.v1.kv_offload.tiering.base import SecondaryTierManager

    assert issubclass(UcmSecondaryTier, SecondaryTierManager) and not UcmSecondaryTier.__abstractmethods__


def test_layouts_name_all_that_matters():
    """The fingerprint follows the spec."""
    assert layout_of(vllm.spec(), 4096) == layout_of(vllm.spec(), 4096)
    assert layout_of(vllm.spec(), 4096).fingerprint() != layout_of(vllm.spec(), 8192).fingerprint()
