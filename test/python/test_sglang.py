# SPDX-License-Identifier: Apache-2.0
"""The backend of SGLang's HiCache, over the double of its host pool."""

import importlib.util
import os
import signal
import threading
import time

import harness
import numpy
import pytest
from conftest import BLOCK, remote
from doubles import sglang_2026_06 as sglang
from ucm_proxy.engines.sglang import make_backend

BACKEND = make_backend(sglang.HiCacheStorage)


def rank_of(store, rank=0, size=1, mla=False, model="double/model", pages=32, **options):
    """A rank's backend, with its pool."""
    config = sglang.HiCacheStorageConfig(tp_rank=rank, tp_size=size, is_mla_model=mla, model_name=model,
                                         extra_config={"store": store, "revision": "main", **options})
    backend = BACKEND(config, {})
    pool = sglang.HostPool(pages, BLOCK, mla)
    backend.register_mem_pool_host(pool)
    return backend, pool


def names(count, first=0):
    """Hashes of pages."""
    return [f"{n:064x}" for n in range(first, first + count)]


def fill(pool, count):
    """Random pages."""
    content = [os.urandom(BLOCK) for _ in range(count)]
    for number, data in enumerate(content):
        pool.fill(number, data)
    return content


def test_pages_move_without_copies(server):
    """Set by one instance, got by another one into other pages; misses are told one by one."""
    one, pool = rank_of(remote(server))
    content = fill(pool, 8)
    assert one.batch_exists(names(8)) == 0
    assert one.batch_set_v1(names(8), pool.indices(range(8))) == [True] * 8
    two, other = rank_of(remote(server))
    assert two.batch_exists(names(12)) == 8 and two.exists(names(1)[0]) and not two.exists("nothing")
    assert two.batch_exists(names(4, 6)) == 2 and two.batch_exists([]) == 0
    hits = two.batch_get_v1(names(10), other.indices(range(20, 30)))
    assert hits == [True] * 8 + [False] * 2
    assert [other.page(20 + n) for n in range(8)] == content
    assert two.get_stats()["get_hits"] == 8
    server.quiet()
    one.close()
    two.close()


def test_a_page_exists_when_every_rank_has_its_part(server):
    """And all ranks get the same answer."""
    ranks = [rank_of(remote(server), rank, 2) for rank in range(2)]
    for backend, pool in ranks:
        fill(pool, 4)
    assert all(ranks[0][0].batch_set_v1(names(4), ranks[0][1].indices(range(4))))
    assert [backend.batch_exists(names(4)) for backend, _ in ranks] == [0, 0]
    assert all(ranks[1][0].batch_set_v1(names(2), ranks[1][1].indices(range(2))))
    assert [backend.batch_exists(names(4)) for backend, _ in ranks] == [2, 2]
    for backend, pool in ranks:  # each gets its own bytes back
        before = [pool.page(n) for n in range(2)]
        assert backend.batch_get_v1(names(2), pool.indices([10, 11])) == [True, True]
        assert [pool.page(10), pool.page(11)] == before
        backend.close()


def test_with_mla_one_rank_serves_all(server):
    """Their parts are equal."""
    ranks = [rank_of(remote(server), rank, 2, mla=True) for rank in range(2)]
    content = fill(ranks[0][1], 3)
    assert all(ranks[0][0].batch_set_v1(names(3), ranks[0][1].indices(range(3))))
    assert ranks[1][0].batch_exists(names(3)) == 3
    assert all(ranks[1][0].batch_get_v1(names(3), ranks[1][1].indices(range(3))))
    assert [ranks[1][1].page(n) for n in range(3)] == content
    for backend, _ in ranks:
        backend.close()


@pytest.mark.parametrize("change", [{"model": "other"}, {"size": 2}, {"mla": True}, {"revision": "next"},
                                    {"dtype": "bfloat16"}])
def test_deployments_that_differ_share_nothing(server, change):
    """Whatever changes the bytes changes the keys."""
    one, pool = rank_of(remote(server))
    two, _ = rank_of(remote(server), **change)
    fill(pool, 2)
    assert all(one.batch_set_v1(names(2), pool.indices(range(2))))
    assert one.batch_exists(names(2)) == 2 and two.batch_exists(names(2)) == 0
    one.close()
    two.close()


def test_older_calls_copy_from_and_to_tensors(server):
    """get and set, alone and in batches."""
    backend, _ = rank_of(remote(server))
    values = [numpy.frombuffer(os.urandom(BLOCK), numpy.uint8).view(sglang.Buffer) for _ in range(3)]
    assert backend.set("a", values[0]) and backend.batch_set(["b", "c"], values[1:])
    targets = [numpy.zeros(BLOCK, numpy.uint8).view(sglang.Buffer) for _ in range(4)]
    got = backend.batch_get(["a", "b", "c", "d"], targets)
    assert [value is not None for value in got] == [True, True, True, False]
    assert all((value == wanted).all() for value, wanted in zip(got, values))
    assert backend.get("a", targets[3]) is targets[3] and backend.get("d", targets[0]) is None
    with pytest.raises(ValueError, match="tensor"):
        backend.get("a")
    backend.close()


def test_a_server_killed_in_the_middle_of_a_batch(servers):
    """Its pages are misses, the other server's come."""
    backend, pool = rank_of(remote(*servers, rpc_timeout="500ms"), timeout=3)
    content = fill(pool, 24)
    assert all(backend.batch_set_v1(names(24), pool.indices(range(24))))
    servers[0].kill()
    hits = backend.batch_get_v1(names(24), pool.indices(range(24)))
    assert any(hits) and not all(hits)
    assert all(pool.page(n) == content[n] for n in range(24) if hits[n])
    assert backend.batch_exists(names(24)) == hits.index(False)
    backend.close()


def test_a_stopped_server_bounds_every_call(server):
    """SIGSTOP: a call of SGLang's storage threads ends by the timeout, as a miss; the others go on."""
    backend, pool = rank_of(remote(server, rpc_timeout="1s"), timeout=2)
    fill(pool, 4)
    assert all(backend.batch_set_v1(names(4), pool.indices(range(4))))
    harness.stand_still(server.process.pid)
    ticks = []
    done = threading.Event()
    answers = {}

    def storage_thread():
        answers["exists"] = backend.batch_exists(names(4))
        answers["get"] = backend.batch_get_v1(names(4), pool.indices(range(4)))
        done.set()

    thread = threading.Thread(target=storage_thread)
    thread.start()
    limit = time.monotonic() + 30 * harness.PATIENCE
    while not done.is_set():  # the scheduler's thread
        assert time.monotonic() < limit
        ticks.append(time.monotonic())
        time.sleep(0.001)
    thread.join()
    assert answers == {"exists": 0, "get": [False] * 4}
    assert max(later - earlier for earlier, later in zip(ticks, ticks[1:])) < 0.5 * harness.PATIENCE
    os.kill(server.process.pid, signal.SIGCONT)
    harness.eventually(lambda: backend.batch_exists(names(4)) == 4, "hits come back")
    backend.close()


def test_close_with_calls_under_way(server):
    """The server is stopped; close ends by the deadline, and so does the call."""
    backend, pool = rank_of(remote(server, rpc_timeout="500ms"), timeout=2)
    harness.stand_still(server.process.pid)
    thread = threading.Thread(target=lambda: backend.batch_set_v1(names(8), pool.indices(range(8))))
    thread.start()
    harness.eventually(lambda: backend._background.under_way > 0, "the call is under way")
    backend.close()
    thread.join(30 * harness.PATIENCE)
    assert not thread.is_alive()
    os.kill(server.process.pid, signal.SIGCONT)


def test_wrong_configuration_is_told(server):
    """No store, pages larger than blocks, pieces that do not fit the keys."""
    with pytest.raises(ValueError, match="store"):
        BACKEND(sglang.HiCacheStorageConfig(), {})
    backend, pool = rank_of(remote(server))
    with pytest.raises(ValueError, match="pieces"):
        backend.batch_set_v1(names(3), pool.indices(range(4)))
    backend.register_mem_pool_host(sglang.HostPool(4, 4 * BLOCK))
    with pytest.raises(ValueError, match="block_bytes"):
        backend.batch_set_v1(names(1), sglang.HostPool(4, 4 * BLOCK).indices([0]))
    backend.close()


def test_calls_in_the_wrong_order(server):
    """Before the pool is known they are told; after close they are misses."""
    early = BACKEND(sglang.HiCacheStorageConfig(extra_config={"store": server.address}))
    for call in (lambda: early.batch_exists(names(1)), lambda: early.batch_set_v1(names(1), [0]),
                 lambda: early.batch_set(names(1), [None])):
        with pytest.raises(RuntimeError, match="register_mem_pool_host"):
            call()
    early.close()
    backend, pool = rank_of(remote(server))
    backend.close()
    backend.close()
    assert backend.batch_set_v1(names(2), pool.indices(range(2))) == [False, False]
    assert backend.batch_get_v1(names(2), pool.indices(range(2))) == [False, False]
    assert backend.batch_exists(names(2)) == 0


@pytest.mark.skipif(importlib.util.find_spec("sglang") is None, reason="SGLang is not installed")
def test_the_real_base_class():
    """Opt-in: on machines that have SGLang, the class is made of its own base class."""
    from sglang.srt.mem_cache.hicache_storage import HiCacheStorage
    from ucm_proxy.engines.sglang import UcmHiCache

    assert issubclass(UcmHiCache, HiCacheStorage) and not UcmHiCache.__abstractmethods__
