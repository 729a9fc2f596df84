# SPDX-License-Identifier: Apache-2.0
"""Client: put, get and look up values, as one tries a store first in a shell.

Everything of it goes through the two interfaces of the package, which an engine uses directly. A client
may be shared by threads: its calls run one after the other.
"""

import asyncio
import concurrent.futures
import threading

from ucm_proxy._calls import Calls
from ucm_proxy._memory import handle_of, is_tensor, memory_of
from ucm_proxy._native import (
    BlockId,
    BlockPayload,
    Error,
    IoContext,
    MEMORY_HOST,
    Memory,
    NotFoundError,
    StoreAssembler,
    block_id,
)
from ucm_proxy._topology import block_bytes, topology

_HEADER_BYTES = 8  # length of a value, little endian, in front of its bytes


class Client:
    """Values by key, over any topology.

    store: "HOST:PORT" or a list of these for ucm-server, or the dict of any topology.
    namespace, credential, fabric: for servers, as in ucm-store-remote(7).
    batch: blocks that are moved at once; as many are held in memory that is registered.

    A key is a str (32 hexadecimal digits name the block itself, other texts are hashed as by ucm(1)), the 16
    bytes of a block id, or a BlockId. A value is anything with a buffer, at most `max_bytes` long. Values that
    are present are never replaced: equal keys mean equal bytes.
    """

    def __init__(self, store="127.0.0.1:7470", *, namespace=None, credential=None, fabric=None,
                 batch=16, ttl_ms=None):
        if batch < 1:
            raise ValueError("batch must be at least 1")
        self._assembler = StoreAssembler(topology(store, namespace=namespace, credential=credential,
                                                  fabric=fabric))
        self._calls = Calls(self._assembler, name="client")
        self._ttl_ms = ttl_ms
        self._lock = threading.Lock()
        self._thread = None
        self._block_bytes = block_bytes(self._calls.scheduler)
        self._batch = batch
        self._memory = Memory(self._block_bytes * batch)
        self._view = memoryview(self._memory)
        self._region = self._calls.worker.register_memory(self._memory)
        self._regions = {}  # those of register_memory(): index → (address, bytes, kind, what lies there)

    @property
    def block_bytes(self):
        """Bytes of a block of the store."""
        return self._block_bytes

    @property
    def max_bytes(self):
        """Longest value that put() takes."""
        return self._block_bytes - _HEADER_BYTES

    def close(self):
        """Give everything back; further calls fail."""
        if self._thread is not None:
            self._thread.shutdown()
        with self._lock:
            self._assembler.close()
            self._regions.clear()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *unused):
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    # Values

    def put(self, key, value, *, ttl_ms=None):
        """Store a value. True if it is in the store now."""
        return self.put_many([(key, value)], ttl_ms=ttl_ms)[0]

    def put_many(self, items, *, ttl_ms=None):
        """Store a mapping, or pairs of key and value. A bool per pair: True if it is in the store now."""
        pairs = list(items.items() if hasattr(items, "items") else items)
        values = [memoryview(value).cast("B") for _, value in pairs]
        for value in values:
            if len(value) > self.max_bytes:
                raise ValueError(f"a value of {len(value)} bytes; blocks hold {self.max_bytes}")
        ids = [_id(key) for key, _ in pairs]
        stored = dict.fromkeys(ids, False)
        fresh = [(idx, id) for idx, id in enumerate(ids) if ids.index(id) == idx] \
            if len(stored) < len(ids) else list(enumerate(ids))
        with self._lock:
            for part in _parts(fresh, self._batch):
                for slot, (idx, _) in enumerate(part):
                    self._fill(slot, values[idx])
                keys = [id for _, id in part]
                put = self._calls.put(keys, self._payloads(len(part)), self._ttl(ttl_ms))
                stored.update(zip(keys, self._run(put)))
        return [stored[id] for id in ids]

    def get(self, key):
        """The value of a key, as bytes, or None."""
        return self.get_many([key])[0]

    def get_many(self, keys):
        """A list with the value, or None, of each key."""
        ids = _ids(keys)
        found = {}
        with self._lock:
            for part in _parts(list(dict.fromkeys(ids)), self._batch):
                loaded = self._run(self._calls.get(part, self._payloads(len(part)), self._ttl_ms))
                found.update((id, self._value(slot)) for slot, id in enumerate(part) if loaded[slot])
        return [found.get(id) for id in ids]

    # Whole blocks as they are, from and to buffers and tensors

    def register_memory(self, memory):
        """Make a buffer or tensor known to transports and devices, before blocks of it are moved.

        A cache of blocks is registered once, as a whole. Host memory need not be, but is moved without a copy
        then; memory of a device must be. Returns the region's number; the client keeps the memory.
        """
        place = memory_of(memory)
        with self._lock:
            # A buffer stays open, so that its owner cannot resize it.
            index = self._calls.worker.register_memory(*(place if is_tensor(memory) else (memory,)))
            self._regions[index] = (*place, memory)
        return index

    def deregister_memory(self, index):
        """Let go of what register_memory() made known."""
        with self._lock:
            if index not in self._regions:
                raise NotFoundError(f"region {index}: register_memory() returned no such number")
            self._calls.worker.deregister_memory(index)
            del self._regions[index]

    def put_from(self, keys, buffers, *, ttl_ms=None, after=None):
        """Store a buffer or tensor of at most `block_bytes` per key. A bool per key.

        after: a torch.cuda.Event recorded behind what still writes to them; nothing is read before.
        """
        return self._move(self._calls.put, keys, buffers, self._ttl(ttl_ms), after)

    def get_into(self, keys, buffers, *, after=None):
        """Fill a writable buffer or tensor per key, of the length that was stored. A bool per key.

        after: a torch.cuda.Event recorded behind what still reads them; nothing is written before.
        """
        buffers = list(buffers)
        for buffer in buffers:
            if not is_tensor(buffer) and memoryview(buffer).readonly:
                raise ValueError("get_into needs writable buffers")
        return self._move(self._calls.get, keys, buffers, self._ttl_ms, after)

    # Presence

    def exists(self, key):
        """Whether a key is in the store."""
        return self.exists_many([key])[0]

    def exists_many(self, keys):
        """A bool per key."""
        ids = _ids(keys)
        with self._lock:
            return self._run(self._calls.lookup(ids, self._ttl_ms))

    def exists_prefix(self, keys):
        """How many keys from the first one on are there without a gap."""
        hits = self.exists_many(keys)
        return hits.index(False) if False in hits else len(hits)

    def touch(self, keys, *, ttl_ms=None):
        """Mark keys as just used, and with a ttl_ms as kept for that long."""
        ids = _ids(keys)
        with self._lock:
            self._run(self._calls.touch(ids, self._ttl(ttl_ms)))

    def stat(self):
        """What the topology says of itself: counters, capacity, health."""
        with self._lock:
            return self._calls.scheduler.describe()

    # The same for asyncio: calls run in order on one thread of the client.

    async def aput(self, key, value, *, ttl_ms=None):
        """put() for asyncio."""
        return await self._later(self.put, key, value, ttl_ms=ttl_ms)

    async def aput_many(self, items, *, ttl_ms=None):
        """put_many() for asyncio."""
        return await self._later(self.put_many, items, ttl_ms=ttl_ms)

    async def aget(self, key):
        """get() for asyncio."""
        return await self._later(self.get, key)

    async def aget_many(self, keys):
        """get_many() for asyncio."""
        return await self._later(self.get_many, keys)

    async def aexists(self, key):
        """exists() for asyncio."""
        return await self._later(self.exists, key)

    async def aexists_many(self, keys):
        """exists_many() for asyncio."""
        return await self._later(self.exists_many, keys)

    async def aexists_prefix(self, keys):
        """exists_prefix() for asyncio."""
        return await self._later(self.exists_prefix, keys)

    async def atouch(self, keys, *, ttl_ms=None):
        """touch() for asyncio."""
        return await self._later(self.touch, keys, ttl_ms=ttl_ms)

    # Parts

    async def _later(self, call, *arguments, **keywords):
        if self._thread is None:
            self._thread = concurrent.futures.ThreadPoolExecutor(1, "ucm-client")
        future = self._thread.submit(call, *arguments, **keywords)
        return await asyncio.wrap_future(future)

    def _ttl(self, ttl_ms):
        return self._ttl_ms if ttl_ms is None else ttl_ms

    def _payloads(self, count):
        return [BlockPayload([self._memory.address + slot * self._block_bytes], [self._block_bytes],
                             [self._region]) for slot in range(count)]

    def _fill(self, slot, value):
        start = slot * self._block_bytes
        end = start + _HEADER_BYTES + len(value)
        self._view[start:start + _HEADER_BYTES] = len(value).to_bytes(_HEADER_BYTES, "little")
        self._view[start + _HEADER_BYTES:end] = value
        # What an earlier value left behind is nobody's business.
        self._view[end:start + self._block_bytes] = bytes(start + self._block_bytes - end)

    def _value(self, slot):
        start = slot * self._block_bytes
        length = int.from_bytes(self._view[start:start + _HEADER_BYTES], "little")
        if length > self.max_bytes:
            raise ValueError("the block was not written by put(); read it with get_into()")
        return bytes(self._view[start + _HEADER_BYTES:start + _HEADER_BYTES + length])

    def _move(self, call, keys, buffers, ttl_ms, after):
        ids = _ids(keys)
        io = IoContext(prerequisite_handle=handle_of(after))
        # Open until the end: their owners can neither resize nor release them under a job.
        buffers = [buffer if is_tensor(buffer) else memoryview(buffer) for buffer in buffers]
        if len(ids) != len(buffers):
            raise ValueError(f"{len(ids)} keys and {len(buffers)} buffers")
        if len(set(ids)) != len(ids):
            raise ValueError("a key appears twice")
        done = []
        with self._lock:
            payloads = [self._payload(*memory_of(buffer)) for buffer in buffers]
            for part in _parts(list(zip(ids, payloads)), self._batch):
                done += self._run(call([id for id, _ in part], [payload for _, payload in part], ttl_ms, io))
        return done

    def _payload(self, address, length, kind):
        for index, (start, size, has_kind, _) in self._regions.items():
            if kind == has_kind and 0 <= address - start <= size - length:
                return BlockPayload([address], [length], [index])
        if kind != MEMORY_HOST:
            raise ValueError("memory of a device must be known: give register_memory() the tensor, or the one "
                             "that it is a part of")
        return BlockPayload([address], [length])

    def _run(self, call):
        """What a generator of Calls comes to, with its jobs waited for here."""
        event = interruption = None
        while True:
            try:
                job_id = call.send(event) if interruption is None else call.throw(interruption)
            except StopIteration as end:
                return end.value
            event, interruption = self._wait(job_id)

    def _wait(self, job_id):
        """The event of a job, and what came instead. Bytes may arrive until the event is there, so Ctrl-C
        waits for it too (its deadline bounds that): the memory is somebody else's afterwards."""
        interruption = None
        while True:
            try:
                events = self._calls.worker.wait([job_id])
                break
            except Error as error:
                return None, error
            except BaseException as error:  # from a signal's handler
                interruption = error
        (event,) = events
        return event, interruption


def _id(key):
    if isinstance(key, str):
        return block_id(key)
    key = key.to_bytes() if isinstance(key, BlockId) else bytes(memoryview(key))
    if len(key) != 16:
        raise ValueError(f"a key of {len(key)} bytes; block ids have 16, names are str")
    return key


def _ids(keys):
    if isinstance(keys, (str, bytes, bytearray)):
        raise TypeError("keys must be a sequence of keys; this is one key")
    return [_id(key) for key in keys]


def _parts(items, size):
    for start in range(0, len(items), size):
        yield items[start:start + size]
