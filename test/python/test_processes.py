# SPDX-License-Identifier: Apache-2.0
"""Scheduler and worker in two processes; the token travels as bytes."""

import ast
import re
import subprocess
import sys
import textwrap

import numpy
import pytest
import ucm_proxy as ucm
from conftest import BLOCK, remote

WORKER = """
import sys
import ucm_proxy as ucm
config = eval(sys.stdin.readline())
worker = ucm.StoreAssembler(config, role="worker").get_worker()
for line in sys.stdin:
    what, data = line.split()
    token = ucm.AddressedToken.from_bytes(bytes.fromhex(data))
    memory = ucm.Memory({block} * len(token))
    view = memoryview(memory)
    payloads = [ucm.BlockPayload([memory.address + n * {block}], [{block}]) for n in range(len(token))]
    if what == "put":
        for n, key in enumerate(token.keys):
            view[n * {block}:(n + 1) * {block}] = key.to_bytes() * ({block} // 16)
        worker.submit_put(1, payloads, token)
    else:
        worker.submit_get(1, payloads, token)
    (event,) = worker.wait([1], 60000)
    right = event.success and all(
        view[n * {block}:(n + 1) * {block}] == key.to_bytes() * ({block} // 16)
        for n, key in enumerate(token.keys))
    print("right" if right else f"wrong {{event}}", flush=True)
"""


class WorkerProcess:
    """The other process."""

    def __init__(self, config):
        self.process = subprocess.Popen([sys.executable, "-c", WORKER.format(block=BLOCK)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        print(repr(config), file=self.process.stdin, flush=True)

    def move(self, what, token):
        """Run a job with a token; what the worker says of it."""
        print(what, token.to_bytes().hex(), file=self.process.stdin, flush=True)
        return self.process.stdout.readline().strip()

    def close(self):
        """Ends the process."""
        self.process.stdin.close()
        assert self.process.wait(60) == 0
        self.process.stdout.close()


def test_canonical_reload(server):
    """R-17.29"""
    config = remote(server)
    keys = numpy.random.bytes(16 * 8)
    worker = WorkerProcess(config)
    with ucm.StoreAssembler(config, role="scheduler") as assembler:
        scheduler = assembler.get_scheduler()
        scheduler.on_new_request(ucm.RequestContext("store"))
        token = scheduler.prepare_put("store", keys[:16 * 5])
        assert worker.move("put", token) == "right"
        scheduler.complete_put("store", True)
        scheduler.on_request_finished("store")

        scheduler.on_new_request(ucm.RequestContext("reload", ttl_ms=60_000, total_block_count=8))
        index = scheduler.lookup_on_prefix("reload", keys)
        assert index == 4
        token = scheduler.prepare_get("reload", keys[:16 * (index + 1)])
        assert worker.move("get", token) == "right"
        scheduler.complete_get("reload")
        scheduler.on_request_finished("reload")
    worker.close()


def test_the_packages_own_example_is_true(server):
    """R-17.29: what help(ucm_proxy) shows, with what it takes for given."""
    code = "\n".join(re.findall(r"^    .*$", ucm.__doc__, re.M))
    code = ast.parse(textwrap.dedent(code))
    config = ast.parse(repr(remote(server)), mode="eval").body
    assert isinstance(code.body[0], ast.Assign) and code.body[0].targets[0].id == "config"
    code.body[0].value = ast.copy_location(config, code.body[0].value)
    array = numpy.random.randint(0, 255, 2 * BLOCK, dtype=numpy.uint8)
    names = {**vars(ucm), "kv_cache": array, "block_bytes": BLOCK, "keys": numpy.random.bytes(32)}
    exec(compile(ast.fix_missing_locations(code), "the example", "exec"), names)
    assert names["last"] == 1 and names["event"].success


def kv_cache(torch, layers=4, tokens=16, heads=2, dim=8):
    """A paged KV cache: per layer a tensor of keys and values (2, blocks, tokens, heads, dim), fp16."""
    return [torch.randn(2, 6, tokens, heads, dim).to(torch.float16) for _ in range(layers)]


def pieces(layers, block):
    """Where a block lies: per layer its part of the keys and of the values."""
    pointers, sizes = [], []
    for layer in layers:
        for half in range(2):
            part = layer[half, block]
            assert part.is_contiguous()
            pointers.append(part.data_ptr())
            sizes.append(part.numel() * part.element_size())
    return pointers, sizes


def test_torch_tensors_round_trip(server):
    """KV-cache-shaped tensors, scattered per layer, written by one topology and read by another."""
    torch = pytest.importorskip("torch")
    keys = numpy.random.bytes(16 * 3)
    source, target = kv_cache(torch), kv_cache(torch)
    with ucm.StoreAssembler(remote(server)) as one, ucm.StoreAssembler(remote(server)) as two:
        scheduler, worker = one.get_scheduler(), one.get_worker()
        scheduler.on_new_request(ucm.RequestContext("r"))
        token = scheduler.prepare_put("r", keys)
        regions = [worker.register_memory(layer.data_ptr(), layer.numel() * 2) for layer in source]
        payloads = []
        for block in (0, 2, 5):
            pointers, sizes = pieces(source, block)
            payloads.append(ucm.BlockPayload(pointers, sizes, [r for r in regions for _ in range(2)]))
        worker.submit_put(1, payloads, token)
        assert worker.wait([1])[0].success
        scheduler.complete_put("r", True)

        scheduler, worker = two.get_scheduler(), two.get_worker()
        scheduler.on_new_request(ucm.RequestContext("r"))
        assert scheduler.lookup_on_prefix("r", keys) == 2
        token = scheduler.prepare_get("r", keys)
        worker.submit_get(1, [ucm.BlockPayload(*pieces(target, block)) for block in (1, 3, 4)], token)
        assert worker.wait([1])[0].success
        scheduler.complete_get("r")
    for block, other in ((0, 1), (2, 3), (5, 4)):
        for layer, copy in zip(source, target):
            assert torch.equal(layer[:, block], copy[:, other])


def test_layers_one_by_one(server):
    """R-5.24: a job per layer, each with its offset in the block; the block shows when all are there."""
    torch = pytest.importorskip("torch")
    keys = numpy.random.bytes(32)
    source, target = kv_cache(torch), kv_cache(torch)
    layer_bytes = source[0][:, 0].numel() * 2
    assert layer_bytes * len(source) == BLOCK
    with ucm.StoreAssembler(remote(server)) as assembler:
        scheduler, worker = assembler.get_scheduler(), assembler.get_worker()
        scheduler.on_new_request(ucm.RequestContext("r"))

        def jobs(submit, layers, token):
            for number, layer in enumerate(layers):
                payloads = []
                for block in range(2):
                    pointers, sizes = pieces([layer], block)
                    payloads.append(ucm.BlockPayload(pointers, sizes, block_offset=number * layer_bytes))
                submit(number, payloads, token)
            events = worker.wait(list(range(len(layers))))
            assert len(events) == len(layers) and all(event.success for event in events)

        jobs(worker.submit_put, source, scheduler.prepare_put("r", keys))
        assert scheduler.lookup("r", keys) == b"\0\0"
        scheduler.complete_put("r", True)
        assert scheduler.lookup("r", keys) == b"\1\1"
        jobs(worker.submit_get, target, scheduler.prepare_get("r", keys))
        scheduler.complete_get("r")
    for layer, copy in zip(source, target):
        assert torch.equal(layer[:, :2], copy[:, :2])
