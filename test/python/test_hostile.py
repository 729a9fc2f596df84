# SPDX-License-Identifier: Apache-2.0
"""Arguments that act while the binding reads them, arguments of every type, and the stub's truth."""

import array
import ast
import gc
import inspect
import pathlib
import random
import sys

import numpy
import pytest
import ucm_proxy as ucm
from conftest import BLOCK, cache

KEYS = bytes(range(32))


@pytest.fixture
def store():
    """Scheduler and worker of a cache in this process, with a request."""
    with ucm.StoreAssembler(cache()) as assembler:
        scheduler, worker = assembler.get_scheduler(), assembler.get_worker()
        scheduler.on_new_request(ucm.RequestContext("r"))
        yield scheduler, worker


class Acts:
    """An int that does something when it is asked for its value."""

    def __init__(self, act, value=1):
        self._act, self._value = act, value

    def __index__(self):
        self._act()
        gc.collect()
        return self._value


class BadHash(int):
    """An int that no dictionary takes."""

    def __hash__(self):
        raise RuntimeError("no hash")


def test_fields_that_are_replaced_while_they_are_read_harm_nothing(store):
    """R-17.7: the lists and texts that a call reads are its own."""
    scheduler, worker = store
    token = scheduler.prepare_put("r", KEYS[:16])

    def replace():
        payload.pointers = []

    memory = ucm.Memory(BLOCK)
    half = BLOCK // 2
    payload = ucm.BlockPayload([Acts(replace, memory.address), memory.address + half], [half, half])
    worker.submit_put(1, [payload], token)
    assert [event.success for event in worker.wait([1])] == [True] and payload.pointers == []
    scheduler.complete_put("r", True)

    for field in ("ttl_ms", "total_block_count"):
        def rename(field=field):
            context.request_id = None
            setattr(context, field, None)

        context = ucm.RequestContext("".join(["long ", "name "] * 50) + field)
        setattr(context, field, Acts(rename, 1000))
        name = str(context.request_id)
        scheduler.on_new_request(context)
        scheduler.on_request_finished(name)

    ids = []
    ids.extend([Acts(ids.clear), 2, 3])
    assert worker.wait(ids, 0) == []


@pytest.mark.parametrize("made, field", [(ucm.IoContext(), "timeout_ms"), (ucm.BlockPayload(), "block_offset")])
def test_an_assignment_that_fails_changes_nothing(made, field):
    """R-17.15"""
    setattr(made, field, 5)
    for wrong in (-1, 2**64, 1.5, None, "1"):
        with pytest.raises((ucm.InvalidParamError, TypeError)):
            setattr(made, field, wrong)
    with pytest.raises(TypeError):
        delattr(made, field)
    assert getattr(made, field) == 5


def test_payloads_may_come_from_an_iterator(store):
    """R-17.14, and what they are is kept until the event."""
    scheduler, worker = store
    memory = ucm.Memory(BLOCK)
    token = scheduler.prepare_put("r", KEYS[:16])
    payloads = (ucm.BlockPayload([address], [BLOCK]) for address in [memory.address])
    worker.submit_put(1, payloads, token)
    assert [event.success for event in worker.wait(iter([1]))] == [True]
    scheduler.complete_put("r", True)


def test_numbers_are_taken_by_value_whatever_their_hash(store):
    """R-17.4: a job or region is known by its number, so that its memory is kept and let go."""
    scheduler, worker = store
    memory = ucm.Memory(BLOCK)
    token = scheduler.prepare_put("r", KEYS[:16])
    worker.submit_put(BadHash(7), [ucm.BlockPayload([memory.address], [BLOCK])], token)
    assert [event.job_id for event in worker.wait([BadHash(7)])] == [7]
    scheduler.complete_put("r", True)

    buffer = bytearray(BLOCK)
    before = sys.getrefcount(buffer)
    worker.deregister_memory(BadHash(worker.register_memory(buffer)))
    gc.collect()
    assert sys.getrefcount(buffer) == before


def test_registered_buffers_cannot_go_away(store):
    """Their owner can neither resize nor release what a region points at; afterwards it can."""
    _, worker = store
    buffer = bytearray(BLOCK)
    region = worker.register_memory(buffer)
    with pytest.raises(BufferError):
        buffer.extend(bytes(1 << 20))
    worker.deregister_memory(region)
    buffer.extend(bytes(1))
    view = memoryview(bytearray(BLOCK))
    region = worker.register_memory(view)
    view.release()
    worker.deregister_memory(region)
    with pytest.raises(ucm.InvalidParamError, match="buffer"):
        worker.register_memory(bytearray(BLOCK), BLOCK + 1)
    for wrong in (bytes(8), numpy.zeros((8, 8))[:, 1], view):
        with pytest.raises((BufferError, ValueError)):
            worker.register_memory(wrong)


def values(generator):
    """Something of any kind."""
    released = memoryview(bytearray(16))
    released.release()

    def fail():
        raise ZeroDivisionError("on purpose")

    return generator.choice([
        None, True, 0, 1, -1, 2**31, 2**63, 2**64, 10**40, 1.5, float("nan"), "", "r", "a\0b", "\ud800",
        "x" * 5000, b"", b"r", KEYS, KEYS[:16], bytes(16 * 64), bytearray(KEYS), memoryview(KEYS)[::2],
        released, array.array("Q", [1, 2]), numpy.zeros((4, 4)), numpy.arange(8, dtype="u8")[::2], [], [1],
        [None], (), {}, {"type": "store"}, set(), object(), object, Acts(lambda: None), Acts(fail),
        Acts(lambda: None, -1), BadHash(3), BadHash(-1), iter([1, 2]), ucm.BlockId(KEYS[:16]),
        ucm.RequestContext(None or "q"), ucm.RequestContext("q", Acts(fail)), ucm.IoContext(first_key=2**63),
        ucm.BlockPayload(), ucm.BlockPayload([1], [1], [0], [1], 1), [ucm.BlockPayload([0], [BLOCK])],
        [ucm.BlockPayload([4096], [2**64 - 1])] * 2, ucm.Memory(16), ucm.IoResult((1, True, 0, None))])


# Numbers of the caller's for addresses would be read, and processes have limits.
_NOT_FUZZED = {"close", "register_memory"}


@pytest.mark.parametrize("seed", range(4))
def test_arguments_of_any_kind_end_in_a_result_or_an_exception(store, seed):
    """R-17.3"""
    generator = random.Random(seed)
    scheduler, worker = store
    token = scheduler.prepare_put("r", KEYS[:16])
    made = (ucm.BlockId, ucm.RequestContext, ucm.IoContext, ucm.BlockPayload, ucm.block_id, ucm.address_of,
            ucm.StoreAssembler, ucm.AddressedToken.from_bytes, ucm.set_log_level)
    for _ in range(4000):
        target = generator.choice([scheduler, worker, token, None])
        if target is None:
            call = generator.choice(made)
        else:
            names = [name for name in dir(target) if name not in _NOT_FUZZED and not name.startswith("_")]
            call = getattr(target, generator.choice(names))
        arguments = [values(generator) if generator.random() < 0.9 else token
                     for _ in range(generator.randrange(5))]
        if call in (worker.wait,):
            arguments[1:] = [0]
        if callable(call):
            try:
                call(*arguments)
            except (ucm.Error, TypeError, ValueError, BufferError, OverflowError, ZeroDivisionError,
                    RuntimeError):
                pass
    assert sys.getrefcount(None) > 100
    ucm.set_log_level("warn")


def test_errors_leak_no_references(store):
    """Every failing path gives back what it took."""
    scheduler, worker = store
    token = scheduler.prepare_put("r", KEYS[:16])
    good = ucm.BlockPayload([1], [1])
    shared = [object(), good, bytearray(16), "r" * 100, KEYS, token, BadHash(5)]
    other, buffer, text, keys, number = (shared[idx] for idx in (0, 2, 3, 4, 6))

    def failing():
        yield lambda: worker.submit_put(number, [good, other], token)
        yield lambda: worker.submit_put(number, [good], other)
        yield lambda: worker.submit_put(number, [ucm.BlockPayload([other], [1])], token)
        yield lambda: worker.submit_put(number, [ucm.BlockPayload(buffer, [1])], token)
        yield lambda: worker.submit_put(number, [good, good, good], token)
        yield lambda: worker.wait([number, other])
        yield lambda: worker.register_memory(buffer, other)
        yield lambda: worker.register_memory(buffer, 10**6)
        yield lambda: worker.register_memory(buffer, 16, 10**6)
        yield lambda: worker.register_memory(keys)
        yield lambda: worker.deregister_memory(number)
        yield lambda: scheduler.on_new_request(ucm.RequestContext(text, other))
        yield lambda: scheduler.lookup(text, keys)
        yield lambda: scheduler.lookup(text, keys[1:])
        yield lambda: scheduler.complete_put(text, buffer)
        yield lambda: ucm.StoreAssembler({text: [1, other]})
        yield lambda: ucm.StoreAssembler({text: {text: other}})

    def round_():
        for call in failing():
            with pytest.raises((ucm.Error, TypeError, BufferError)):
                call()

    round_()
    gc.collect()
    before = [sys.getrefcount(one) for one in shared]
    for _ in range(20):
        round_()
    gc.collect()
    assert [sys.getrefcount(one) for one in shared] == before
    scheduler.complete_put("r", False)


def stub():
    """The stub's classes with the names in them, its functions and its constants."""
    path = pathlib.Path(ucm.__file__).with_name("_native.pyi")
    classes, functions, constants = {}, {}, {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            classes[node.name] = {part.name if isinstance(part, ast.FunctionDef) else part.target.id: part
                                  for part in node.body if not isinstance(part, ast.Expr)}
        elif isinstance(node, ast.FunctionDef):
            functions[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            constants[node.target.id] = node.annotation.id
    return classes, functions, constants


def parameters(node):
    """Names of a stub's function without self."""
    return [one.arg for one in node.args.args if one.arg != "self"]


def test_the_stub_says_what_the_module_has():
    """Names of classes, functions, members and parameters, in both directions."""
    native = sys.modules["ucm_proxy._native"]
    classes, functions, constants = stub()
    assert {*classes, *functions, *constants} == {name for name in dir(native) if not name.startswith("_")}
    assert all(type(getattr(native, name)).__name__ == kind for name, kind in constants.items())
    for name, node in functions.items():
        assert list(inspect.signature(getattr(native, name)).parameters) == parameters(node), name
    for name, members in classes.items():
        kind = getattr(native, name)
        public = {one for one in vars(kind) if not one.startswith("_")}
        if issubclass(kind, ucm.Error):
            public = public & {"code", "name"} if kind is ucm.Error else set()
        if kind is ucm.IoResult:
            public -= {one for one in public if one.startswith("n_")}
        stubbed = {one for one in members if not one.startswith("_")}
        assert stubbed == public, name
        for member, node in members.items():
            real = getattr(kind, member, None)
            if member in public and isinstance(node, ast.FunctionDef) and callable(real):
                try:
                    signature = list(inspect.signature(real).parameters)
                except ValueError:  # says none: takes nothing
                    signature = parameters(node)
                assert [one for one in signature if one != "self"] == parameters(node), f"{name}.{member}"
