# SPDX-License-Identifier: Apache-2.0
"""Ends of an assembler that nobody closed: cycles through what it holds (R-17.4)."""

import gc
import os
import signal
import threading
import weakref

import harness
import pytest
import ucm_proxy as ucm
from conftest import BLOCK, cache, remote


class Buffer(bytearray):
    """Memory that can refer to something."""


class Number(int):
    """An int that can refer to something."""


def through_a_region(assembler):
    """An engine's memory that knows the worker it is registered with."""
    buffer = Buffer(BLOCK)
    buffer.worker = assembler.get_worker()
    buffer.worker.register_memory(buffer)


def through_a_job(assembler):
    """A job in flight whose payload knows the scheduler."""
    scheduler, worker = assembler.get_scheduler(), assembler.get_worker()
    scheduler.on_new_request(ucm.RequestContext("r"))
    token = scheduler.prepare_put("r", bytes(16))
    memory = ucm.Memory(BLOCK)
    address = Number(memory.address)
    address.known = scheduler, memory
    worker.submit_put(1, [ucm.BlockPayload([address], [BLOCK])], token)


@pytest.fixture
def no_automatic_collection():
    """Only what a test asks for."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_automatic_collection")
@pytest.mark.parametrize("tie", [through_a_region, through_a_job])
def test_a_cycle_is_collected(tie):
    """R-17.4: an assembler and what it holds go away together."""
    assembler = ucm.StoreAssembler(cache())
    gone = weakref.ref(assembler)
    tie(assembler)
    del assembler
    assert gone() is not None
    gc.collect()
    assert gone() is None


@pytest.mark.usefixtures("no_automatic_collection")
def test_a_cycle_with_jobs_in_flight_is_cleared_after_their_end(server):
    """R-17.4, R-5.24: bytes arrive in the memory of a cycle while the collector waits for the jobs."""
    keys = os.urandom(16 * 64)
    with ucm.Client(server.address, fabric="tcp") as client:
        assert all(client.put_from([keys[n:n + 16] for n in range(0, len(keys), 16)], [bytes(BLOCK)] * 64))

    def tie():
        buffer = Buffer(64 * BLOCK)
        address, _ = ucm.address_of(buffer)
        buffer.assembler = ucm.StoreAssembler(remote(server))
        scheduler, buffer.worker = buffer.assembler.get_scheduler(), buffer.assembler.get_worker()
        region = buffer.worker.register_memory(buffer)
        scheduler.on_new_request(ucm.RequestContext("r"))
        token = scheduler.prepare_get("r", keys)
        harness.stand_still(server.process.pid)
        buffer.worker.submit_get(1, [ucm.BlockPayload([address + n * BLOCK], [BLOCK], [region])
                                     for n in range(64)], token)
        return weakref.ref(buffer.assembler)

    gone = tie()
    timer = threading.Timer(0.3, os.kill, (server.process.pid, signal.SIGCONT))
    timer.start()
    gc.collect()
    timer.join()
    assert gone() is None


@pytest.mark.usefixtures("no_automatic_collection")
def test_who_is_brought_back_by_a_finalizer_is_closed():
    """An object of the cycle that saves itself keeps an assembler that answers with an error."""
    class Saves(Buffer):
        def __del__(self):
            saved.append(self)

    saved = []
    buffer = Saves(BLOCK)
    buffer.worker = ucm.StoreAssembler(cache()).get_worker()
    buffer.worker.register_memory(buffer)
    del buffer
    gc.collect()
    with pytest.raises(ucm.InvalidParamError, match="closed"):
        saved[0].worker.get_finished()
    saved.pop().__dict__.clear()
    gc.collect()
