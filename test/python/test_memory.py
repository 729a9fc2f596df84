# SPDX-License-Identifier: Apache-2.0
"""Buffers and tensors as memory of blocks, on the host and on a device (R-2.26, R-5.25, R-17.28)."""

import os
import pathlib
import re
import subprocess
import sys
import types

import numpy
import pytest
import ucm_proxy as ucm
from conftest import BLOCK, cache

HEADER = pathlib.Path(__file__).resolve().parents[2] / "core" / "include" / "ucm" / "block.h"
DRIVER = pathlib.Path(os.environ["UCM_BIN"]).parent / "test/unit/client/device/libcuda.so.1"


class Tensor:
    """As much of a torch.Tensor as is asked for, anywhere."""

    def __init__(self, address, count, device="cuda", contiguous=True):
        self._address, self._count, self._contiguous = address, count, contiguous
        self.device = types.SimpleNamespace(type=device)

    def data_ptr(self):
        return self._address

    def numel(self):
        return self._count

    def element_size(self):
        return 2

    def is_contiguous(self):
        return self._contiguous


class Recording:
    """A worker that takes memory of any kind, and tells what it was given."""

    def __init__(self, worker):
        self._worker = worker
        self.registered, self.deregistered, self.jobs = [], [], []

    def __getattr__(self, name):
        return getattr(self._worker, name)

    def register_memory(self, *arguments):
        self.registered.append(arguments)
        return 40 + len(self.registered)

    def deregister_memory(self, index):
        self.deregistered.append(index)

    def submit_put(self, job_id, payloads, token, io):
        self.jobs.append(([(list(one.pointers), list(one.sizes), list(one.memory_region_indices))
                           for one in payloads], io.prerequisite_handle))
        raise ucm.UnsupportedError("no device here")


@pytest.fixture
def recording():
    """A client, and the double in place of its worker."""
    with ucm.Client(cache()) as client:
        client._calls.worker = Recording(client._calls.worker)
        yield client, client._calls.worker


def test_kinds_have_the_numbers_of_the_library():
    """R-2.26"""
    numbers = dict(re.findall(r"UC_(MEMORY_[A-Z]+) = (\d+),", HEADER.read_text(encoding="utf-8")))
    assert numbers and numbers == {name: str(getattr(ucm, name)) for name in dir(ucm)
                                   if name.startswith("MEMORY_")}


def test_the_kind_reaches_the_store():
    """R-17.28, R-2.26: a kind that nobody has is refused, and the host's memory is no device's."""
    memory = ucm.Memory(BLOCK)
    with ucm.StoreAssembler(cache()) as assembler:
        worker = assembler.get_worker()
        assert worker.register_memory(memory, BLOCK, ucm.MEMORY_HOST) == 0
        assert worker.register_memory(memory.address, BLOCK, kind=ucm.MEMORY_HOST) == 1
        with pytest.raises(ucm.UnsupportedError):
            worker.register_memory(memory, BLOCK, 77)
        with pytest.raises((ucm.UnsupportedError, ucm.InvalidParamError)):
            worker.register_memory(memory, BLOCK, ucm.MEMORY_CUDA)


def test_memory_of_buffers_and_tensors():
    """Address, bytes, kind: what register_memory takes."""
    array = numpy.zeros(100, numpy.uint32)
    assert ucm.memory_of(array) == (array.ctypes.data, 400, ucm.MEMORY_HOST)
    assert ucm.memory_of(Tensor(4096, 50, "cpu")) == (4096, 100, ucm.MEMORY_HOST)
    assert ucm.memory_of(Tensor(4096, 50)) == (4096, 100, ucm.MEMORY_CUDA)
    with pytest.raises(ValueError, match="meta"):
        ucm.memory_of(Tensor(4096, 50, "meta"))
    with pytest.raises(ValueError, match="contiguous"):
        ucm.memory_of(Tensor(4096, 50, contiguous=False))
    for wrong in (5, "text", None):
        with pytest.raises(TypeError):
            ucm.memory_of(wrong)


def test_tensors_of_torch_move_as_blocks(server):
    """On the host they need no registration; with one, their region is named."""
    torch = pytest.importorskip("torch")
    source, target = torch.randn(4, BLOCK // 4), torch.zeros(4, BLOCK // 4)
    keys = [bytes([n]) * 16 for n in range(4)]
    with ucm.Client(server.address, fabric="tcp") as client:
        region = client.register_memory(source)
        assert client.put_from(keys, list(source)) == [True] * 4
        assert client.get_into(keys, list(target)) == [True] * 4
        client.deregister_memory(region)
    assert torch.equal(source, target)


def test_a_tensor_on_a_device_is_registered_with_its_kind(recording):
    """R-5.26: blocks of it name the region, and the job waits for the event."""
    client, worker = recording
    whole = Tensor(1 << 40, 8 * BLOCK)
    region = client.register_memory(whole)
    assert worker.registered == [(1 << 40, 16 * BLOCK, ucm.MEMORY_CUDA)]
    block = Tensor((1 << 40) + BLOCK, BLOCK // 2)
    event = types.SimpleNamespace(cuda_event=1234)
    with pytest.raises(ucm.UnsupportedError, match="no device"):
        client.put_from([b"k" * 16], [block], after=event)
    assert worker.jobs == [([([(1 << 40) + BLOCK], [BLOCK], [region])], 1234)]
    client.deregister_memory(region)
    assert worker.deregistered == [region]


def test_memory_of_a_device_that_is_not_registered_is_refused(recording):
    """Before anything moves: nobody could read it by its address."""
    client, worker = recording
    whole = Tensor(1 << 40, BLOCK)
    region = client.register_memory(whole)
    for address in ((1 << 40) - 2, (1 << 40) + 2 * BLOCK, (1 << 40) + 2 * BLOCK - 2):
        with pytest.raises(ValueError, match="register_memory"):
            client.put_from([b"k" * 16], [Tensor(address, 2)])
    client.deregister_memory(region)
    with pytest.raises(ValueError, match="register_memory"):
        client.get_into([b"k" * 16], [whole])
    assert not worker.jobs
    for unknown in (region, 0, 99):
        with pytest.raises(ucm.NotFoundError):
            client.deregister_memory(unknown)


def test_an_event_that_was_never_recorded_is_refused(recording):
    """R-5.25: its number is 0, which stands for no event."""
    client, worker = recording
    for event in (types.SimpleNamespace(cuda_event=0), 0):
        with pytest.raises(ValueError, match="recorded"):
            client.put_from([b"k" * 16], [bytes(BLOCK)], after=event)
    with pytest.raises(AttributeError):
        client.put_from([b"k" * 16], [bytes(BLOCK)], after="event")
    assert not worker.jobs


def test_an_event_without_a_driver_is_unsupported():
    """R-5.25: this process uses no device, so nobody can tell when it has fired."""
    with ucm.Client(cache()) as client:
        with pytest.raises(ucm.UnsupportedError):
            client.put_from([b"k" * 16], [bytes(BLOCK)], after=1234)
        assert client.put_from([b"k" * 16], [bytes(BLOCK)]) == [True]


ON_A_DEVICE = """
import ctypes, sys, threading
sys.path.insert(0, sys.argv[2])
driver = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)  # an engine has loaded its own by now
import ucm_proxy as u
from test_memory import BLOCK, Tensor, cache

for name, result, argument in (("alloc", ctypes.c_void_p, ctypes.c_size_t),
                               ("bytes", ctypes.c_void_p, ctypes.c_void_p),
                               ("make_event", ctypes.c_uint64, None), ("fire", None, ctypes.c_uint64)):
    function = getattr(driver, "fake_cuda_" + name)
    function.restype, function.argtypes = result, [argument] if argument else []
address = driver.fake_cuda_alloc(8 * BLOCK)  # touching it is a crash
seen = (ctypes.c_char * (8 * BLOCK)).from_address(driver.fake_cuda_bytes(address))
blocks = [Tensor(address + n * BLOCK, BLOCK // 2) for n in range(8)]
keys = [bytes([n]) * 16 for n in range(4)]
event = driver.fake_cuda_make_event()
stored = []
with u.Client(cache()) as client:
    region = client.register_memory(Tensor(address, 4 * BLOCK))
    thread = threading.Thread(target=lambda: stored.extend(client.put_from(keys, blocks[:4], after=event)))
    thread.start()
    seen[:4 * BLOCK] = bytes(range(256)) * (4 * BLOCK // 256)  # what the stream was still computing
    driver.fake_cuda_fire(event)
    thread.join()
    loaded = client.get_into(keys, blocks[4:])
    client.deregister_memory(region)
print(stored, loaded, seen[:4 * BLOCK] == seen[4 * BLOCK:], seen[256:512] == bytes(range(256)))
"""


@pytest.mark.skipif(not DRIVER.exists(), reason="the driver without a device is built with the unit tests")
def test_blocks_move_between_a_device_and_a_store():
    """R-2.26, R-5.25: by copies of the device's driver, after the event that the engine recorded."""
    done = subprocess.run([sys.executable, "-c", ON_A_DEVICE, str(DRIVER), str(pathlib.Path(__file__).parent)],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == f"{[True] * 4} {[True] * 4} True True\n", done.stderr
