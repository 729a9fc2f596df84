# SPDX-License-Identifier: Apache-2.0
"""Types, errors and methods of the binding (section 17 of core/CONTRACT.md)."""

import array
import gc
import os
import pathlib
import pickle
import re
import select
import subprocess
import sys
import threading
import weakref

import numpy
import pytest
import ucm_proxy as ucm
from conftest import BLOCK, cache
from hypothesis import given, settings, strategies

KEYS = bytes(range(32))


@pytest.fixture
def store():
    """Scheduler and worker of a cache in this process, with a request."""
    assembler = ucm.StoreAssembler(cache())
    scheduler, worker = assembler.get_scheduler(), assembler.get_worker()
    scheduler.on_new_request(ucm.RequestContext("r"))
    yield scheduler, worker
    assembler.close()


def put(scheduler, worker, keys, memory):
    """Store len(keys) / 16 blocks that lie one after the other in memory."""
    count = len(keys) // 16
    token = scheduler.prepare_put("r", keys)
    payloads = [ucm.BlockPayload([memory.address + idx * BLOCK], [BLOCK]) for idx in range(count)]
    worker.submit_put(1, payloads, token)
    (event,) = worker.wait([1])
    assert event.success
    scheduler.complete_put("r", True)


def test_block_id_is_sixteen_bytes_hashable_and_comparable():
    """R-17.11"""
    one, same, other = ucm.BlockId(KEYS[:16]), ucm.BlockId(KEYS[:16]), ucm.BlockId(KEYS[16:])
    assert one == same and one != other and one < other and hash(one) == hash(same)
    assert {one: 1}[same] == 1 and one.to_bytes() == KEYS[:16]
    assert pickle.loads(pickle.dumps(one)) == one
    for size in (0, 15, 17):
        with pytest.raises(ucm.InvalidParamError):
            ucm.BlockId(bytes(size))
    with pytest.raises(TypeError):
        ucm.BlockId("x" * 16)


def test_errors_have_a_class_per_status():
    """R-17.3"""
    assert issubclass(ucm.Error, RuntimeError)
    expected = {"General": -1, "InvalidParam": -50000, "OutOfMemory": -50001, "OsApiError": -50002,
                "DuplicateKey": -50003, "Retry": -50004, "NotFound": -50005, "Unsupported": -50008,
                "NoSpace": -50009, "Timeout": -50010, "Unhealthy": -50011, "PermissionDenied": -50012,
                "Stale": -50013, "Draining": -50014}
    for name, code in expected.items():
        kind = getattr(ucm, name if name.endswith("Error") else name + "Error")
        assert issubclass(kind, ucm.Error) and kind.code == code and kind.name == name


def test_an_error_has_code_name_and_text_form(store):
    """R-17.3, R-3.4"""
    scheduler, _ = store
    with pytest.raises(ucm.DuplicateKeyError) as caught:
        scheduler.on_new_request(ucm.RequestContext("r"))
    assert (caught.value.code, caught.value.name) == (-50003, "DuplicateKey")
    assert str(caught.value).startswith("DuplicateKey (-50003): ")


@pytest.mark.parametrize("config, path", [
    ({"type": "store", "store": "cache", "config": {"x": None}}, "config.x"),
    ({"type": "store", "store": "cache", "config": {"x": (1, 2)}}, "config.x"),
    ({"type": "pipe", "stores": [{"store": "cache"}, 5]}, "stores[1]"),
    ({"type": "store", "store": "cache", "config": {"big": 2**63}}, "config.big"),
    ({"a": {"b": [1, 2.0]}}, "a.b[1]"),
    ({"a": {"b": [True, 1]}}, "a.b[1]"),
    ({"a": b"bytes"}, "a"),
    ({"a": [[1]]}, "a[0]"),
])
def test_what_is_no_configuration_is_named_by_its_key(config, path):
    """R-17.10"""
    with pytest.raises(ucm.InvalidParamError) as caught:
        ucm.StoreAssembler(config)
    assert f": {path}:" in str(caught.value)


def test_a_configuration_that_holds_itself_is_refused():
    """R-17.10"""
    config = {"type": "store"}
    config["config"] = config
    with pytest.raises(ucm.InvalidParamError):
        ucm.StoreAssembler(config)


def test_wrong_types_raise_type_error(store):
    """R-17.3"""
    scheduler, worker = store
    wrong = [
        lambda: ucm.StoreAssembler([]),
        lambda: scheduler.on_new_request("r"),
        lambda: scheduler.lookup(5, KEYS),
        lambda: scheduler.lookup("r", "keys"),
        lambda: scheduler.complete_put("r", 1),
        lambda: scheduler.complete_prefetch("r", None),
        lambda: worker.submit_get(1, [], b"token"),
        lambda: worker.submit_get("1", [], None),
        lambda: worker.wait(5),
        lambda: worker.register_memory(4096),
        lambda: ucm.StoreScheduler(),
        lambda: ucm.StoreWorker(),
        lambda: ucm.AddressedToken(),
        lambda: ucm.RequestContext(5),
    ]
    for call in wrong:
        with pytest.raises(TypeError):
            call()
    with pytest.raises(BufferError):
        worker.register_memory(b"read only")


def test_bad_values_are_invalid_param(store):
    """R-17.7"""
    scheduler, worker = store
    token = scheduler.prepare_put("r", KEYS)
    wrong = [
        lambda: scheduler.lookup("r", KEYS[:-1]),
        lambda: scheduler.lookup("a\0b", KEYS),
        lambda: ucm.StoreAssembler(cache(), role="both\0"),
        lambda: ucm.StoreAssembler(cache(), role="nobody"),
        lambda: worker.submit_put(-1, [], token),
        lambda: worker.submit_put(2**64, [], token),
        lambda: worker.submit_put(1, [ucm.BlockPayload([1], [])] * 2, token),
        lambda: worker.submit_put(1, [ucm.BlockPayload([-1], [1])] * 2, token),
        lambda: worker.submit_put(1, [ucm.BlockPayload([1], [1], [2**32])] * 2, token),
        lambda: worker.submit_put(1, [], token),
        lambda: worker.submit_put(1, [ucm.BlockPayload(numpy.zeros(1), [1])] * 2, token),
        lambda: worker.deregister_memory(2**40),
        lambda: ucm.AddressedToken.from_bytes(b"no token"),
    ]
    for call in wrong:
        with pytest.raises((ucm.InvalidParamError, ValueError)):
            call()
    scheduler.complete_put("r", False)


def test_lookups_answer_bytes_and_indices(store):
    """R-17.5, R-17.19, R-17.20, R-17.21, R-17.7"""
    scheduler, worker = store
    memory = ucm.Memory(2 * BLOCK)
    assert scheduler.lookup("r", KEYS) == b"\0\0"
    assert scheduler.lookup("r", b"") == b""
    assert scheduler.lookup_on_prefix("r", KEYS) == -1
    put(scheduler, worker, KEYS[16:], memory)
    assert scheduler.lookup("r", bytearray(KEYS)) == b"\0\1"
    assert scheduler.lookup("r", memoryview(KEYS)) == b"\0\1"
    assert scheduler.lookup("r", numpy.frombuffer(KEYS, numpy.uint8)) == b"\0\1"
    assert scheduler.lookup_on_prefix("r", keys=KEYS) == -1
    assert scheduler.lookup_on_reverse(request_id="r", keys=KEYS) == 1
    assert scheduler.touch("r", KEYS) is None


def test_a_prefetch_signal_is_none(tmp_path):
    """R-17.6, R-17.22, R-17.23, R-17.25: blocks below are lifted by a round, then the lookup is concrete."""
    posix = {"type": "store", "store": "posix",
             "config": {"root": str(tmp_path), "block_bytes": BLOCK, "capacity": "1MiB"}}
    with ucm.Client(posix) as below:
        assert below.put_many([(KEYS[:16], b"one"), (KEYS[16:], b"two")]) == [True, True]
    with ucm.StoreAssembler({"type": "pipe", "stores": [cache(), posix]}) as assembler:
        scheduler, worker = assembler.get_scheduler(), assembler.get_worker()
        scheduler.on_new_request(ucm.RequestContext("r"))
        assert scheduler.lookup_on_prefix("r", KEYS) is None
        token = scheduler.prepare_prefetch("r")
        worker.submit_prefetch(9, token)
        assert worker.wait([9])[0].success
        scheduler.complete_prefetch("r", True)
        assert scheduler.lookup_on_prefix("r", KEYS) == 1


def test_tokens_travel_as_bytes_and_by_pickle(store):
    """R-17.13, R-2.19"""
    scheduler, _ = store
    token = scheduler.prepare_put("r", KEYS)
    assert [key.to_bytes() for key in token.keys] == [KEYS[:16], KEYS[16:]] and len(token) == 2
    for copy in (ucm.AddressedToken.from_bytes(token.to_bytes()), pickle.loads(pickle.dumps(token))):
        assert copy.to_bytes() == token.to_bytes() and copy.payload == token.payload
    scheduler.complete_put("r", False)


def test_payload_fields_are_lists_or_buffers(store):
    """R-17.14, R-17.9, R-17.28: lists, tuples, array and numpy describe the same memory."""
    scheduler, worker = store
    memory = ucm.Memory(2 * BLOCK)
    memoryview(memory)[:] = os.urandom(2 * BLOCK)
    put(scheduler, worker, KEYS, memory)
    token = scheduler.prepare_get("r", KEYS)
    target = ucm.Memory(2 * BLOCK)
    region = worker.register_memory(target)
    half = BLOCK // 2
    address = target.address
    shapes = [
        lambda pointers, sizes: ucm.BlockPayload(pointers, sizes, [region] * 2),
        lambda pointers, sizes: ucm.BlockPayload(tuple(pointers), tuple(sizes)),
        lambda pointers, sizes: ucm.BlockPayload(array.array("Q", pointers), array.array("Q", sizes)),
        lambda pointers, sizes: ucm.BlockPayload(numpy.array(pointers, numpy.uint64),
                                                 numpy.array(sizes, numpy.int64),
                                                 numpy.array([region] * 2, numpy.uint32)),
        lambda pointers, sizes: ucm.BlockPayload(pointers, sizes, group_sizes=[1, 1]),
    ]
    for job, shape in enumerate(shapes):
        memoryview(target)[:] = bytes(2 * BLOCK)
        payloads = [shape([address + idx * BLOCK, address + idx * BLOCK + half], [half, half])
                    for idx in range(2)]
        worker.submit_get(job, payloads, token)
        assert worker.wait([job])[0].success
        assert bytes(memoryview(target)) == bytes(memoryview(memory))
    payload = ucm.BlockPayload()
    payload.pointers.append(address)
    payload.sizes = [BLOCK]
    assert payload.pointers == [address] and payload.block_offset == 0
    with pytest.raises(TypeError):
        payload.sizes = b"12345678"
    with pytest.raises(TypeError):
        del payload.sizes
    scheduler.complete_get("r")
    worker.deregister_memory(region)
    with pytest.raises(ucm.NotFoundError):
        worker.deregister_memory(region)


def test_request_facts_are_optional(store):
    """R-17.8, R-17.12, R-17.18"""
    scheduler, _ = store
    context = ucm.RequestContext()
    assert (context.request_id, context.ttl_ms, context.total_block_count) == ("", None, None)
    context.request_id, context.ttl_ms, context.total_block_count = "facts", 5, 2**40
    assert scheduler.on_new_request(context) is None
    assert scheduler.on_request_finished("facts") is None
    with pytest.raises(ucm.NotFoundError):
        scheduler.on_request_finished("facts")
    for name, value, error in (("ttl_ms", "5", TypeError), ("ttl_ms", -1, ucm.InvalidParamError),
                               ("total_block_count", 1.5, TypeError), ("request_id", 7, TypeError),
                               ("request_id", "", ucm.InvalidParamError),
                               ("request_id", "x" * 2000, ucm.InvalidParamError)):
        context = ucm.RequestContext("bad")
        setattr(context, name, value)
        with pytest.raises(error):
            scheduler.on_new_request(context)


def test_names_of_methods_are_those_of_the_functions():
    """R-17.1: every function of the two interfaces has its method, and no method is without one."""
    headers = pathlib.Path(__file__).resolve().parents[2] / "core" / "include" / "ucm"
    for kind, prefix in ((ucm.StoreScheduler, "scheduler"), (ucm.StoreWorker, "worker")):
        text = (headers / f"{prefix}.h").read_text()
        functions = set(re.findall(rf"uc_{prefix}_(\w+)\(struct|uc_{prefix}_(\w+)\(\n", text))
        names = {name for pair in functions for name in pair if name} - {"complete_put_mask"}
        assert names == {name for name in dir(kind) if not name.startswith("_")}


def test_native_calls_let_other_threads_run(store):
    """R-17.2: the GIL is free while a wait blocks."""
    scheduler, worker = store
    turns = []
    started = threading.Event()

    def count():
        started.set()
        for _ in range(1000):
            turns.append(scheduler.lookup("r", KEYS))

    thread = threading.Thread(target=count)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)  # threads change hands only where the GIL is released
    try:
        thread.start()
        started.wait()
        while len(turns) < 1000:
            worker.wait([1], 5)
    finally:
        sys.setswitchinterval(interval)
    thread.join()
    assert len(turns) == 1000


def test_a_list_that_changes_while_it_is_read_harms_nothing(store):
    """An int that empties the list when it is asked for its value."""
    scheduler, worker = store
    token = scheduler.prepare_put("r", KEYS[:16])

    class Trap:
        def __index__(self):
            payload.pointers.clear()
            return 4096

    payload = ucm.BlockPayload([Trap(), 1, 2], [1, 1, 1])
    with pytest.raises(ucm.InvalidParamError):
        worker.submit_put(1, [payload], token)
    scheduler.complete_put("r", False)


def test_io_context_covers_a_part_of_the_token(store):
    """R-17.15, R-9.21"""
    scheduler, worker = store
    memory = ucm.Memory(2 * BLOCK)
    memoryview(memory)[:BLOCK] = b"1" * BLOCK
    memoryview(memory)[BLOCK:] = b"2" * BLOCK
    put(scheduler, worker, KEYS, memory)
    token = scheduler.prepare_get("r", KEYS)
    target = bytearray(BLOCK)
    address, length = ucm.address_of(target)
    worker.submit_get(5, [ucm.BlockPayload([address], [length])], token,
                      ucm.IoContext(first_key=1, key_count=1, timeout_ms=5000))
    assert worker.wait([5])[0].success and target == b"2" * BLOCK
    scheduler.complete_get("r")
    with pytest.raises(ucm.InvalidParamError):
        ucm.IoContext(first_key=-1)


def test_a_mask_concludes_keys_one_by_one(store):
    """R-17.23"""
    scheduler, worker = store
    memory = ucm.Memory(2 * BLOCK)
    token = scheduler.prepare_put("r", KEYS)
    worker.submit_put(1, [ucm.BlockPayload([memory.address + n * BLOCK], [BLOCK]) for n in range(2)], token)
    worker.wait([1])
    scheduler.complete_put("r", b"\0\1")
    assert scheduler.lookup("r", KEYS) == b"\0\1"


def test_a_failed_job_tells_per_block(store):
    """R-17.16"""
    scheduler, worker = store
    memory = ucm.Memory(2 * BLOCK)
    put(scheduler, worker, KEYS[:16], memory)
    token = scheduler.prepare_get("r", KEYS[:16])
    scheduler.complete_get("r")  # too early on purpose; the token is stale from here on
    other = ucm.StoreAssembler(cache()).get_worker()
    other.submit_get(3, [ucm.BlockPayload([memory.address], [BLOCK])], token)
    (event,) = other.wait([3])
    assert not event.success and event.code != 0 and event.job_id == 3
    assert event.blocks is None or event.blocks == b"\0"
    with pytest.raises(AttributeError):
        event.code = 0


def test_wait_ignores_unknown_ids_and_shows_timeouts_as_a_shorter_list(store):
    """R-17.27"""
    _, worker = store
    assert worker.wait([]) == [] and worker.wait([1, 2, 3], timeout_ms=0) == []
    assert worker.wait((5,), 20) == []
    assert worker.get_finished() == []


def test_the_event_descriptor_wakes_a_loop(store):
    """R-9.29, R-17.26"""
    scheduler, worker = store
    memory = ucm.Memory(BLOCK)
    token = scheduler.prepare_put("r", KEYS[:16])
    descriptor = worker.event_fd()
    assert select.select([descriptor], [], [], 0)[0] == []
    worker.submit_put(77, [ucm.BlockPayload([memory.address], [BLOCK])], token)
    assert select.select([descriptor], [], [], 30)[0] == [descriptor]
    assert [event.job_id for event in worker.get_finished()] == [77]
    assert select.select([descriptor], [], [], 0)[0] == []


def test_objects_keep_the_assembler_alive():
    """R-17.4"""
    assembler = ucm.StoreAssembler(cache())
    watched = weakref.ref(assembler)
    scheduler = assembler.get_scheduler()
    del assembler
    gc.collect()
    assert watched() is not None
    scheduler.on_new_request(ucm.RequestContext("r"))
    del scheduler
    gc.collect()
    assert watched() is None


def test_an_assembler_that_dies_waits_for_its_jobs():
    """R-17.4: the buffers of jobs in flight are let go only afterwards."""
    memory = ucm.Memory(64 * BLOCK)
    for _ in range(20):
        assembler = ucm.StoreAssembler(cache())
        scheduler, worker = assembler.get_scheduler(), assembler.get_worker()
        scheduler.on_new_request(ucm.RequestContext("r"))
        token = scheduler.prepare_put("r", bytes(os.urandom(16 * 64)))
        worker.submit_put(1, [ucm.BlockPayload([memory.address + n * BLOCK], [BLOCK]) for n in range(64)],
                          token)
        del assembler, scheduler, worker, token


def test_a_closed_assembler_answers_invalid_param():
    """Methods of its objects fail; closing twice is nothing."""
    assembler = ucm.StoreAssembler(cache())
    scheduler, worker = assembler.get_scheduler(), assembler.get_worker()
    assembler.close()
    assembler.close()
    for call in (lambda: scheduler.lookup("r", KEYS), worker.get_finished, assembler.get_worker,
                 worker.event_fd, scheduler.describe):
        with pytest.raises(ucm.InvalidParamError):
            call()


@pytest.mark.parametrize("role, refused", [("scheduler", "get_worker"), ("worker", "get_scheduler")])
def test_a_role_hands_out_its_interface_only(role, refused):
    """R-17.17, R-14.16"""
    with ucm.StoreAssembler(cache(domain=f"test-{os.getpid()}"), role="scheduler") as owner:
        assembler = owner if role == "scheduler" else \
            ucm.StoreAssembler(cache(domain=f"test-{os.getpid()}"), role="worker")
        with pytest.raises(ucm.UnsupportedError):
            getattr(assembler, refused)()
        assembler.close()


def test_a_second_thread_inside_a_call_is_an_error_and_not_a_race(store):
    """R-5.32: one data thread at a time."""
    scheduler, worker = store
    inside = threading.Event()
    done = threading.Event()
    errors = []
    token = scheduler.prepare_put("r", KEYS[:16])  # in flight for ever: nothing is submitted
    assert len(token) == 1

    def spin():
        inside.set()
        while not done.is_set():
            try:
                worker.get_finished()
            except ucm.InvalidParamError as error:
                errors.append(error)

    threads = [threading.Thread(target=spin) for _ in range(4)]
    for thread in threads:
        thread.start()
    inside.wait()
    for _ in range(2000):
        try:
            worker.wait([12345], 0)
        except ucm.InvalidParamError as error:
            errors.append(error)
    done.set()
    for thread in threads:
        thread.join()
    assert all("one at a time" in str(error) for error in errors)


def test_after_fork_the_child_gets_an_error(store):
    """What the parent made is not the child's; the parent goes on."""
    scheduler, worker = store
    child = os.fork()
    if child == 0:
        status = 1
        try:
            scheduler.lookup("r", KEYS)
        except ucm.UnsupportedError as error:
            status = 0 if "fork" in str(error) else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert scheduler.lookup("r", KEYS) == b"\0\0" and worker.get_finished() == []


SCRIPTS = {
    "nothing closed": "",
    "a job in flight": "w.submit_put(1, [u.BlockPayload([m.address], [4096])], t)",
    "a daemon thread in a wait":
        "w.submit_put(1, [u.BlockPayload([m.address], [4096])], t)\n"
        "threading.Thread(target=lambda: [w.wait([1, 2], 50) for _ in range(10**6)], daemon=True).start()\n"
        "time.sleep(0.1)",
    "an exception": "raise SystemExit(0)",
    "kept by a cycle": "c = [a]; c.append(c); sys.modules['kept'] = c",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_interpreter_ends_cleanly(name):
    """With everything still open, in every state."""
    script = f"""
import sys, threading, time
import ucm_proxy as u
a = u.StoreAssembler({cache()!r})
s, w = a.get_scheduler(), a.get_worker()
s.on_new_request(u.RequestContext("r"))
t = s.prepare_put("r", bytes(16))
m = u.Memory(4096)
{SCRIPTS[name]}
"""
    done = subprocess.run([sys.executable, "-X", "dev", "-c", script], capture_output=True, text=True,
                          timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_ends_a_wait(server):
    """A wait for a job that cannot end is interrupted, and the event is not lost."""
    script = f"""
import os, signal, threading, time
import harness
import ucm_proxy as u
a = u.StoreAssembler({{"type": "store", "store": "remote", "config": {{"servers": ["{server.address}"],
                     "fabric": "tcp", "timeout_ms": 2500}}}})
s, w = a.get_scheduler(), a.get_worker()
s.on_new_request(u.RequestContext("r"))
t = s.prepare_put("r", bytes(16))
m = u.Memory({BLOCK})
harness.stand_still({server.process.pid})
w.submit_put(1, [u.BlockPayload([m.address], [{BLOCK}])], t)
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
start = time.monotonic()
try:
    w.wait([1])
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted" if time.monotonic() - start < 2 else "late")
print(len(w.wait([1])))
os.kill({server.process.pid}, signal.SIGCONT)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.stdout.split("\n")[:2] == ["interrupted", "1"], done.stderr


def test_descriptions_are_plain_dictionaries(store):
    """R-17.24, R-17.10"""
    for half in store:
        description = half.describe()
        assert description["name"] == "cache" and description["block_bytes"] == BLOCK
        assert isinstance(description["token_addressed"], bool)
        assert half.health() is None


def test_health_raises_when_unhealthy(server):
    """R-17.24"""
    config = {"type": "store", "store": "remote",
              "config": {"servers": [server.address], "fabric": "tcp", "rpc_timeout": "200ms"}}
    with ucm.StoreAssembler(config, role="scheduler") as assembler:
        scheduler = assembler.get_scheduler()
        scheduler.on_new_request(ucm.RequestContext("r"))
        assert scheduler.health() is None
        server.kill()
        scheduler.lookup("r", KEYS)
        with pytest.raises(ucm.UnhealthyError):
            scheduler.health()


def test_memory_does_not_grow(store):
    """A million calls; what leaked would show as megabytes."""
    scheduler, worker = store
    memory = ucm.Memory(BLOCK)
    put(scheduler, worker, KEYS[:16], memory)
    token = scheduler.prepare_get("r", KEYS[:16])
    payload = ucm.BlockPayload([memory.address], [BLOCK])
    io = ucm.IoContext(first_key=9)
    data = token.to_bytes()

    def calls(count):
        for _ in range(count):
            scheduler.lookup("r", KEYS)
            scheduler.lookup_on_prefix("r", KEYS)
            worker.get_finished()
            worker.wait([5], 0)
            ucm.AddressedToken.from_bytes(data).keys
            ucm.BlockId(KEYS[:16])
            ucm.RequestContext("x", 5)
            scheduler.describe()
            for bad in (lambda: worker.submit_get(1, [payload], token, io),
                        lambda: scheduler.on_new_request(ucm.RequestContext("r"))):
                try:
                    bad()
                except ucm.Error:
                    pass

    rounds = 10_000 if os.environ.get("UCM_PATIENCE", "1") != "1" else 100_000
    calls(rounds // 10)
    gc.collect()
    before = resident()
    calls(rounds)
    gc.collect()
    assert resident() - before < 4 << 20
    scheduler.complete_get("r")


def resident():
    """Bytes of this process in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


SCALARS = strategies.one_of(strategies.booleans(), strategies.integers(-2**63, 2**63 - 1),
                            strategies.floats(allow_nan=False),
                            strategies.text(strategies.characters(blacklist_characters="\0",
                                                                  blacklist_categories=("Cs",))))
VALUES = strategies.recursive(
    strategies.one_of(SCALARS, strategies.none(), strategies.binary(), strategies.lists(SCALARS)),
    lambda inner: strategies.one_of(
        strategies.lists(inner, max_size=4),
        strategies.dictionaries(strategies.text(max_size=8), inner, max_size=4)),
    max_leaves=20)


@settings(max_examples=300, deadline=None)
@given(strategies.dictionaries(strategies.text(max_size=8), VALUES, max_size=6))
def test_any_dictionary_is_refused_with_an_error(config):
    """Nothing random is a topology, and nothing random crashes."""
    with pytest.raises((ucm.Error, TypeError)):
        ucm.StoreAssembler(config)


@settings(max_examples=300, deadline=None)
@given(strategies.binary(max_size=200))
def test_foreign_token_bytes_are_refused(data):
    """R-2.19"""
    try:
        token = ucm.AddressedToken.from_bytes(data)
    except ucm.InvalidParamError:
        return
    assert token.to_bytes() == data
