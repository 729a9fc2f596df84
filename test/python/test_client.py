# SPDX-License-Identifier: Apache-2.0
"""Client: values by key, over a server, several of them, and tiers."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time

import harness
import numpy
import pytest
import ucm_proxy as ucm
from conftest import BLOCK, cache, remote


@pytest.fixture(params=["server", "two servers", "cache", "cache over a server"])
def topology(request, servers):
    """The topologies that a client is tried on."""
    return {
        "server": remote(servers[0]),
        "two servers": remote(*servers),
        "cache": cache(capacity_blocks=256),
        "cache over a server": {"type": "pipe", "stores": [cache(), remote(servers[0])]},
    }[request.param]


def test_values_come_back(topology):
    """Also empty ones, and of the largest size."""
    with ucm.Client(topology) as client:
        values = {f"key {n}": os.urandom(n * 37 % client.max_bytes) for n in range(50)}
        values["empty"] = b""
        values["full"] = os.urandom(client.max_bytes)
        assert client.put_many(values) == [True] * 52
        assert client.get_many(values) == list(values.values())
        assert client.get("empty") == b"" and client.get("nothing") is None
        assert client.get_many(["full", "nothing", "full"]) == [values["full"], None, values["full"]]
        assert client.exists("full") and not client.exists("nothing")
        assert client.exists_prefix([*values, "nothing", "full"]) == 52
        assert client.exists_many([]) == [] and client.get_many([]) == [] and client.put_many([]) == []
        client.touch(["full", "nothing"], ttl_ms=60_000)


def test_two_clients_share_what_a_server_has(server):
    """And the command line tool finds it under the same name."""
    with ucm.Client(server.address, fabric="tcp") as one, ucm.Client(server.address, fabric="tcp") as two:
        one.put("shared", b"value")
        assert two.get("shared") == b"value"
    found = harness.run("ucm", f"--server={server.address}", "exists", "shared")
    assert found.returncode == 0 and found.stdout.startswith("present")


def test_a_present_value_is_not_replaced(server):
    """Equal keys mean equal bytes."""
    with ucm.Client(server.address, fabric="tcp") as client:
        assert client.put("key", b"first") and client.put("key", b"second")
        assert client.get("key") == b"first"
        assert client.put_many([("twice", b"a"), ("twice", b"b")]) == [True, True]
        assert client.get("twice") == b"a"


def test_whole_blocks_move_without_copies(server):
    """Buffers of numpy, of the size that was stored."""
    with ucm.Client(server.address, fabric="tcp", batch=3) as client:
        blocks = [numpy.random.randint(0, 255, BLOCK, dtype=numpy.uint8) for _ in range(10)]
        keys = [bytes([n]) * 16 for n in range(10)]
        assert client.put_from(keys, blocks) == [True] * 10
        targets = [numpy.zeros(BLOCK, dtype=numpy.uint8) for _ in range(11)]
        assert client.get_into([*keys, b"x" * 16], targets) == [True] * 10 + [False]
        assert all((block == target).all() for block, target in zip(blocks, targets))
        with pytest.raises(ValueError):
            client.get_into(keys[:1], [bytes(BLOCK)])
        with pytest.raises(ValueError):
            client.put_from(keys, blocks[:1])


def test_wrong_use_is_told(server):
    """What is wrong, before anything moves."""
    with ucm.Client(server.address, fabric="tcp") as client:
        with pytest.raises(ValueError, match="hold"):
            client.put("big", bytes(client.max_bytes + 1))
        with pytest.raises(ValueError, match="16"):
            client.put(b"short", b"")
        with pytest.raises(TypeError):
            client.put("number", 5)
        for wrong in (16, 16.0, None, numpy.zeros((2, 8), dtype=numpy.uint8)[:, ::2]):
            with pytest.raises((TypeError, BufferError, ValueError)):
                client.get(wrong)
        for wrong in ("a name", b"x" * 16):
            with pytest.raises(TypeError, match="sequence of keys"):
                client.exists_many(wrong)
        assert client.put(ucm.BlockId(b"i" * 16), b"1") and client.get(b"i" * 16) == b"1"
    with pytest.raises(ucm.InvalidParamError, match="closed"):
        client.get("after close")
    with pytest.raises(ValueError):
        ucm.Client(cache(), namespace="other")
    with pytest.raises(ucm.Error):
        ucm.Client(server.address, namespace="unknown", fabric="tcp")


def test_async_calls(server):
    """Side by side, with other tasks of the loop going on."""
    async def main():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.001)

        ticker = asyncio.ensure_future(tick())
        async with ucm.Client(server.address, fabric="tcp") as client:
            await asyncio.gather(*(client.aput(f"{n}", bytes([n])) for n in range(50)))
            values = await asyncio.gather(*(client.aget(f"{n}") for n in range(51)))
            assert values == [bytes([n]) for n in range(50)] + [None]
            assert await client.aexists_prefix(["1", "2", "x"]) == 2
            assert await client.aput_many({"a": b"1"}) == [True]
            assert await client.aget_many(["a", "b"]) == [b"1", None]
            assert await client.aexists("a") and await client.aexists_many(["b"]) == [False]
            await client.atouch(["a"])
            harness.stand_still(server.process.pid)
            before = ticks
            task = asyncio.ensure_future(client.aget("a"))
            await asyncio.sleep(0.2)
            assert ticks - before > 5  # a stopped server does not stop the loop
            os.kill(server.process.pid, signal.SIGCONT)
            await task
        ticker.cancel()

    asyncio.run(main())


def test_threads_share_a_client(server):
    """Calls run one after the other."""
    with ucm.Client(server.address, fabric="tcp") as client:
        def work(name):
            for n in range(30):
                assert client.put(f"{name}-{n}", f"{name}{n}".encode())
                assert client.get(f"{name}-{n}") == f"{name}{n}".encode()

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert client.exists_prefix([f"{name}-{n}" for name in "abcd" for n in range(30)]) == 120


def test_a_dead_server_is_misses(servers):
    """And the blocks of the other stay."""
    with ucm.Client(remote(*servers, rpc_timeout="500ms")) as client:
        keys = [f"{n}" for n in range(40)]
        assert all(client.put_many((key, key.encode()) for key in keys))
        servers[0].kill()
        found = client.get_many(keys)
        assert any(found) and not all(found)
        assert all(value in (None, key.encode()) for key, value in zip(keys, found))
        start = time.monotonic()
        client.put_many((f"new {n}", b"") for n in range(10))
        assert time.monotonic() - start < 20 * harness.PATIENCE


INTERRUPTED = """
import os, signal, sys, threading
import ucm_proxy as u
import harness

address, pid = sys.argv[1], int(sys.argv[2])
client = u.Client({"type": "store", "store": "remote",
                   "config": {"servers": [address], "fabric": "tcp", "timeout_ms": 2500}})
key = b"k" * 16
client.put_from([key], [b"1" * client.block_bytes])


class Stopping:
    def __init__(self, worker):
        self.worker = worker

    def __getattr__(self, name):
        return getattr(self.worker, name)

    def submit_get(self, *arguments):
        harness.stand_still(pid)
        self.worker.submit_get(*arguments)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()


calls = client._calls
real, calls.worker = calls.worker, Stopping(calls.worker)
target = bytearray(client.block_bytes)
try:
    client.get_into([key], [target])
except KeyboardInterrupt:
    before = bytes(target)
    os.kill(pid, signal.SIGCONT)
    calls.worker = real
    assert client.put_from([b"n" * 16], [b"2" * client.block_bytes]) == [True]
    print("same" if bytes(target) == before else "written", real.get_finished())
"""


def test_ctrl_c_hands_memory_back_only_when_the_job_ended(server):
    """Nothing arrives in a caller's buffer, or in the client's own, after the call was left."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, server.address, str(server.process.pid)],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "same []\n", done.stderr


def test_buffers_stay_open_while_they_are_moved(server):
    """Their owner can neither resize nor release them meanwhile."""
    with ucm.Client(server.address, fabric="tcp") as client:
        buffer = bytearray(BLOCK)
        seen = []

        class Watching:
            def __getattr__(self, name):
                return getattr(worker, name)

            def submit_put(self, *arguments):
                with pytest.raises(BufferError):
                    buffer.extend(b"more")
                seen.append(True)
                worker.submit_put(*arguments)

        worker, client._calls.worker = client._calls.worker, Watching()
        assert client.put_from([b"k" * 16], [buffer]) == [True] and seen == [True]
        client._calls.worker = worker
