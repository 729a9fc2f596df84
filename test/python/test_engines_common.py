# SPDX-License-Identifier: Apache-2.0
"""What the engine adapters share: names of blocks, and the thread that makes the calls."""

import gc
import os
import select
import signal
import time

import harness
import pytest
import ucm_proxy as ucm
from conftest import BLOCK, cache, remote
from hypothesis import given, strategies
from ucm_proxy.engines._background import Background, Busy
from ucm_proxy.engines._keys import Keys, Layout

LAYOUT = {"model": "m", "revision": "r", "dtype": "float16", "layout": "page-first", "page_tokens": 16,
          "block_bytes": BLOCK, "ranks": 2}


@pytest.mark.parametrize("field, value", [
    ("model", "n"), ("revision", ""), ("dtype", "bfloat16"), ("layout", "layer-first"),
    ("page_tokens", 32), ("block_bytes", 8192), ("ranks", 4), ("extra", (("adapter", "x"),))])
def test_every_part_of_a_layout_changes_every_key(field, value):
    """Two deployments that differ in anything have no name in common."""
    one = Keys(Layout(**LAYOUT))
    other = Keys(Layout(**{**LAYOUT, field: value}))
    names = [bytes([n]) for n in range(50)]
    assert not {key for name in names for key in one.parts(name)} & \
        {key for name in names for key in other.parts(name)}


@given(strategies.lists(strategies.binary(max_size=40), unique=True), strategies.integers(1, 8))
def test_keys_differ_by_name_and_rank(names, ranks):
    """And are sixteen bytes, the same in every process."""
    keys = Keys(Layout(**{**LAYOUT, "ranks": ranks}))
    made = [key for name in names for key in keys.parts(name)]
    assert len(set(made)) == len(names) * ranks and all(len(key) == 16 for key in made)
    assert [keys.part(name, 0) for name in names] == [keys.parts(name)[0] for name in names]


def test_a_block_is_whole_when_every_rank_has_its_part():
    """All ranks compute the same answer from the same flags."""
    keys = Keys(Layout(**LAYOUT))
    assert keys.whole(["a", "b", "c"], [True, True, True, False, False, True]) == [True, False, False]


def test_layouts_that_would_mix_deployments_are_refused():
    """Empty names and sizes that make no sense."""
    for field, value in (("model", ""), ("dtype", ""), ("layout", ""), ("page_tokens", 0), ("ranks", 0)):
        with pytest.raises(ValueError, match=field):
            Layout(**{**LAYOUT, field: value})
    with pytest.raises(ValueError, match="rank"):
        Keys(Layout(**LAYOUT)).part("a", 2)


def ended(background, ticket, seconds=30):
    """Wait for a ticket as an engine would: by its descriptor."""
    limit = time.monotonic() + seconds * harness.PATIENCE
    while not ticket.done:
        assert time.monotonic() < limit, f"{ticket.kind} did not end"
        select.select([background], [], [], 0.1)
        background.finished()
    return ticket


def key(number):
    """A block id."""
    return number.to_bytes(16, "little")


def test_put_lookup_get_and_touch(server):
    """Partial hits are told key by key."""
    memory = ucm.Memory(4 * BLOCK)
    view = memoryview(memory)
    view[:] = os.urandom(4 * BLOCK)
    wanted = bytes(view)
    pieces = [[(memory.address + n * BLOCK, BLOCK // 2), (memory.address + n * BLOCK + BLOCK // 2,
                                                          BLOCK // 2)] for n in range(4)]
    background = Background(remote(server), memory=[(memory.address, memory.size)])
    put = ended(background, background.put([key(1), key(3)], [pieces[1], pieces[3]], ttl_ms=60_000))
    assert put.hits == [True, True] and put.error is None
    keys = [key(n) for n in range(4)]
    assert ended(background, background.lookup(keys)).hits == [False, True, False, True]
    view[:] = bytes(4 * BLOCK)
    assert ended(background, background.get(keys, pieces)).hits == [False, True, False, True]
    for n in range(4):
        part = slice(n * BLOCK, (n + 1) * BLOCK)
        assert bytes(view[part]) == (wanted[part] if n % 2 else bytes(BLOCK))
    assert ended(background, background.touch(keys)).error is None
    assert ended(background, background.lookup([])).hits == []
    assert background.under_way == 0 and background.close()


def test_blocks_below_are_lifted(server):
    """A lookup through a pipe runs the prefetch that it is asked for."""
    with ucm.Client(server.address, fabric="tcp") as client:
        client.put_from([key(n) for n in range(8)], [bytes([n]) * BLOCK for n in range(8)])
    background = Background({"type": "pipe", "stores": [cache(), remote(server)]})
    assert ended(background, background.lookup([key(n) for n in range(9)])).hits == [True] * 8 + [False]
    target = bytearray(BLOCK)
    address, length = ucm.address_of(target)
    assert ended(background, background.get([key(5)], [[(address, length)]])).hits == [True]
    assert target == bytes([5]) * BLOCK
    background.close()


def test_a_stopped_server_stops_no_call_of_the_engine(server):
    """Every call returns at once; the tickets end when their deadlines pass."""
    memory = ucm.Memory(BLOCK)
    background = Background(remote(server, rpc_timeout="1s", timeout_ms=2000))
    assert ended(background, background.lookup([key(1)])).hits == [False]
    harness.stand_still(server.process.pid)
    start = time.monotonic()
    tickets = [background.lookup([key(1)]), background.put([key(2)], [[(memory.address, BLOCK)]]),
               background.get([key(3)], [[(memory.address, BLOCK)]]), background.touch([key(1)])]
    background.finished()
    assert time.monotonic() - start < 0.5 * harness.PATIENCE and not any(t.done for t in tickets)
    for ticket in tickets:
        assert ended(background, ticket).hits in ([False], [True])  # touch may be answered locally
    os.kill(server.process.pid, signal.SIGCONT)
    background.close()


def test_a_killed_server_fails_its_keys_only(servers):
    """In the middle of a batch; the other server's blocks are stored and found."""
    memory = ucm.Memory(32 * BLOCK)
    pieces = [[(memory.address + n * BLOCK, BLOCK)] for n in range(32)]
    keys = [key(n) for n in range(32)]
    background = Background(remote(*servers, rpc_timeout="500ms", timeout_ms=3000))
    assert ended(background, background.put(keys, pieces)).hits == [True] * 32
    servers[0].kill()
    got = ended(background, background.get(keys, pieces)).hits
    assert any(got) and not all(got)
    assert ended(background, background.lookup(keys)).hits == got
    background.close()


def test_closing_with_jobs_under_way(server):
    """Every ticket ends, whatever the server does; later calls are refused."""
    memory = ucm.Memory(64 * BLOCK)
    pieces = [[(memory.address + n * BLOCK, BLOCK)] for n in range(64)]
    background = Background(remote(server, rpc_timeout="500ms", timeout_ms=2000))
    harness.stand_still(server.process.pid)
    tickets = [background.put([key(n)], [pieces[n]]) for n in range(64)]
    assert not background.close(0.0)
    assert isinstance(background.put([key(99)], [pieces[0]]).error, Busy)
    assert background.close(60 * harness.PATIENCE)
    assert all(ticket.done for ticket in tickets)
    os.kill(server.process.pid, signal.SIGCONT)


def test_more_than_the_limit_is_refused():
    """At once, with Busy, and the room comes back."""
    background = Background(cache(), limit=4)
    tickets = [background.lookup([key(n)]) for n in range(200)]
    for ticket in tickets:
        ended(background, ticket)
    assert any(isinstance(ticket.error, Busy) for ticket in tickets) or background.counters["lookups"] == 200
    assert ended(background, background.lookup([key(1)])).error is None
    background.close()


def test_wrong_input_ends_the_ticket(server):
    """An error of a call is the ticket's, and the thread goes on."""
    background = Background(remote(server))
    assert isinstance(ended(background, background.lookup([b"short"])).error, ucm.InvalidParamError)
    assert isinstance(ended(background, background.put([key(1)], [])).error, ucm.InvalidParamError)
    memory = ucm.Memory(2 * BLOCK)
    assert ended(background, background.put([key(1)], [[(memory.address, BLOCK + 1)]])).hits == [False]
    assert ended(background, background.lookup([key(1)])).hits == [False]
    server.quiet()
    background.close()


class Fails:
    """A number whose value is an exception of no expected kind."""

    def __init__(self, kind):
        self._kind = kind

    def __index__(self):
        raise self._kind("on purpose")


@pytest.mark.parametrize("kind", [RuntimeError, KeyError, MemoryError, BufferError, OverflowError])
def test_an_exception_of_any_kind_is_the_tickets(kind):
    """And the thread goes on with the next one."""
    background = Background(cache())
    memory = ucm.Memory(BLOCK)
    put = ended(background, background.put([key(1)], [[(memory.address, BLOCK)]], ttl_ms=Fails(kind)))
    assert isinstance(put.error, kind) and put.hits == [False]
    assert ended(background, background.lookup([key(1)])).error is None
    assert background.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_ends_leaves_nobody_waiting(server):
    """What is under way ends with an error, after its jobs; what comes later is refused."""
    background = Background(remote(server))

    class Broken:
        def get_finished(self):
            raise MemoryError("on purpose")

    with background._lock:  # before it looks at what came
        background._calls.worker = Broken()
    tickets = [background.lookup([key(n)]) for n in range(10)]
    for ticket in tickets:
        background.wait(ticket)
    assert all(isinstance(ticket.error, Busy) and "on purpose" in str(ticket.error) for ticket in tickets)
    assert background.under_way == 0 and background.close()
    background.idle()


def test_a_forked_child_is_told_and_ends(server):
    """Whatever the parent's threads held at the fork."""
    background = Background(remote(server))
    with background._lock:
        child = os.fork()
    if child == 0:
        background._lock.locked()  # nobody will release it here
        status = 1
        try:
            background.lookup([key(1)])
        except ucm.UnsupportedError:
            status = 0 if background.close() else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert ended(background, background.lookup([key(1)])).hits == [False]
    background.close()


def test_a_failed_start_leaves_no_descriptor_open():
    """Memory that nobody can register."""
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(ucm.Error):
            Background(cache(), memory=[(0, 0)])
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before
