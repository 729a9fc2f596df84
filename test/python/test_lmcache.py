# SPDX-License-Identifier: Apache-2.0
"""The native plugin of LMCache, loaded and driven as LMCache does."""

import importlib.util
import os
import signal
import time

import harness
import pytest
from conftest import BLOCK, remote
from doubles import lmcache_2026_06 as lmcache


def connector(store, **parameters):
    """A connector, from the configuration of an L2 adapter."""
    config = {"type": "native_plugin", "module_path": "ucm_proxy.engines.lmcache",
              "class_name": "UcmConnector",
              "adapter_params": {"store": store, "model": "m", "dtype": "float16", "chunk_tokens": 256,
                                 **parameters}}
    made = lmcache.load(config)
    return made, lmcache.Wrapper(made)


def names(count, first=0):
    """Keys of chunks."""
    return [f"model@2@0@{n:016x}" for n in range(first, first + count)]


def views(count):
    """Writable memory."""
    return [memoryview(bytearray(BLOCK)) for _ in range(count)]


def test_set_exists_and_get(server):
    """By two instances, with a flag per key."""
    one, first = connector(remote(server))
    two, second = connector(remote(server))
    content = [memoryview(os.urandom(BLOCK)) for _ in range(6)]
    assert first.result(one.submit_batch_exists(names(6))) == (True, "", [False] * 6)
    assert first.result(one.submit_batch_set(names(6), content)) == (True, "", [True] * 6)
    assert second.result(two.submit_batch_exists(names(8))) == (True, "", [True] * 6 + [False] * 2)
    targets = views(6)
    assert second.result(two.submit_batch_get(names(6), targets)) == (True, "", [True] * 6)
    assert targets == content
    ok, error, flags = second.result(two.submit_batch_get(names(4, 4), views(4)))
    assert not ok and error and flags == [True, True, False, False]
    assert second.result(two.submit_batch_exists([])) == (True, "", [])
    assert two.metrics()["get_hits"] == 8
    server.quiet()
    one.close()
    two.close()


def test_chunks_may_be_shorter_than_blocks(server):
    """The length of a get is that of the set."""
    made, wrapper = connector(remote(server))
    data = memoryview(os.urandom(1000))
    assert wrapper.result(made.submit_batch_set(["short"], [data]))[0]
    target = memoryview(bytearray(1000))
    assert wrapper.result(made.submit_batch_get(["short"], [target]))[0] and target == data
    made.close()


def test_views_stay_until_the_future_ends(server):
    """The caller drops them at once."""
    made, wrapper = connector(remote(server))
    futures = [made.submit_batch_set([f"k{n}"], [memoryview(bytes([n]) * BLOCK)]) for n in range(100)]
    assert all(wrapper.result(future)[0] for future in futures)
    for n in range(100):
        target = memoryview(bytearray(BLOCK))
        assert wrapper.result(made.submit_batch_get([f"k{n}"], [target]))[0]
        assert target == bytes([n]) * BLOCK
    made.close()


def test_delete_is_not_offered(server):
    """And says so; the chunk stays."""
    made, wrapper = connector(remote(server))
    wrapper.result(made.submit_batch_set(["k"], views(1)))
    ok, error, flags = wrapper.result(made.submit_batch_delete(["k"]))
    assert not ok and "evicts" in error and flags == [False]
    assert wrapper.result(made.submit_batch_exists(["k"]))[2] == [True]
    made.close()


@pytest.mark.parametrize("change", [{"model": "n"}, {"dtype": "bfloat16"}, {"chunk_tokens": 128},
                                    {"revision": "next"}])
def test_deployments_that_differ_share_nothing(server, change):
    """Whatever changes the bytes changes the keys."""
    one, first = connector(remote(server))
    two, second = connector(remote(server), **change)
    first.result(one.submit_batch_set(["k"], views(1)))
    assert first.result(one.submit_batch_exists(["k"]))[2] == [True]
    assert second.result(two.submit_batch_exists(["k"]))[2] == [False]
    one.close()
    two.close()


def test_a_server_killed_in_the_middle_of_a_batch(servers):
    """Flags tell which chunks came."""
    made, wrapper = connector(remote(*servers, rpc_timeout="500ms", timeout_ms=3000))
    content = [memoryview(os.urandom(BLOCK)) for _ in range(24)]
    assert wrapper.result(made.submit_batch_set(names(24), content))[0]
    targets = views(24)
    future = made.submit_batch_get(names(24), targets)
    servers[0].kill()
    _, _, flags = wrapper.result(future)
    assert all(target == wanted for target, wanted, ok in zip(targets, content, flags) if ok)
    _, _, flags = wrapper.result(made.submit_batch_get(names(24), targets))
    assert any(flags) and not all(flags)
    made.close()


def test_a_stopped_server_makes_no_call_wait(server):
    """SIGSTOP: submits return at once, futures end by their deadline."""
    made, wrapper = connector(remote(server, rpc_timeout="1s", timeout_ms=2000))
    assert wrapper.result(made.submit_batch_set(names(2), views(2)))[0]
    harness.stand_still(server.process.pid)
    start = time.monotonic()
    futures = [made.submit_batch_get(names(2), views(2)), made.submit_batch_set(names(2, 5), views(2)),
               made.submit_batch_exists(names(2))]
    made.drain_completions()
    assert time.monotonic() - start < 0.5 * harness.PATIENCE
    for future in futures:
        assert wrapper.result(future, 30 * harness.PATIENCE)[2] == [False, False]
    os.kill(server.process.pid, signal.SIGCONT)
    made.close()


def test_close_with_futures_under_way(server):
    """Every future ends."""
    made, wrapper = connector(remote(server, rpc_timeout="500ms", timeout_ms=1000))
    harness.stand_still(server.process.pid)
    futures = [made.submit_batch_set(names(2, 2 * n), views(2)) for n in range(8)]
    made.close()
    assert all(wrapper.result(future)[2] == [False, False] for future in futures)
    os.kill(server.process.pid, signal.SIGCONT)


def test_wrong_use_is_told(server):
    """Before anything moves."""
    made, _ = connector(remote(server))
    with pytest.raises(ValueError, match="views"):
        made.submit_batch_set(["a", "b"], views(1))
    with pytest.raises(ValueError, match="writable"):
        made.submit_batch_get(["a"], [memoryview(bytes(BLOCK))])
    made.close()
    with pytest.raises(ValueError, match="model"):
        connector(remote(server), model="")


@pytest.mark.skipif(importlib.util.find_spec("lmcache") is None, reason="LMCache is not installed")
def test_the_real_factory():
    """Opt-in: on machines that have LMCache, its own list of needed methods is met."""
    from lmcache.v1.distributed.l2_adapters.native_plugin_l2_adapter import NativePluginL2AdapterConfig

    assert NativePluginL2AdapterConfig.from_dict({"type": "native_plugin", "class_name": "UcmConnector",
                                                  "module_path": "ucm_proxy.engines.lmcache"})
