# SPDX-License-Identifier: Apache-2.0
"""Background: a thread that makes the calls of a topology, so that an engine's own threads never wait.

A call hands over a ticket and returns at once; the ticket is done some time later. Tickets that ended are
listed once by finished(), and the descriptor of fileno() is readable while there are any.
"""

import atexit
import collections
import os
import select
import threading
import weakref

from ucm_proxy._calls import Calls
from ucm_proxy._native import BlockPayload, IoContext, StoreAssembler, UnsupportedError
from ucm_proxy._topology import block_bytes


class Busy(RuntimeError):
    """More is under way than the limit allows, or the adapter is closing."""


class Ticket:
    """What a call asked for and, once it is done, what came of it."""

    __slots__ = ("kind", "keys", "call", "tag", "done", "hits", "error", "event")

    def __init__(self, kind, keys, call, tag):
        self.kind = kind  # "lookup", "put", "get" or "touch"
        self.keys = keys
        self.call = call  # the generator that does it, of our thread; None when done
        self.tag = tag  # the caller's
        self.done = False  # set last, after hits and error
        self.hits = None  # a bool per key: present, stored, loaded
        self.event = threading.Event()  # set when done
        self.error = None  # the exception that ended it; hits are then False


class Background:
    """Lookups, puts and gets over a topology, on a thread of their own.

    memory: (address, bytes[, kind]) ranges that payloads lie in, registered for as long as this lives.
    limit: tickets under way at once; what comes on top ends with Busy.
    listed: whether finished() is used; where every ticket is waited for, nothing need be listed.
    """

    def __init__(self, config, *, memory=(), limit=1024, timeout_ms=0, listed=True, name="ucm-engine"):
        self._assembler = StoreAssembler(config)
        self._calls = Calls(self._assembler, name="engine", io=IoContext(timeout_ms=timeout_ms))
        self.block_bytes = block_bytes(self._calls.scheduler)
        self._limit = limit
        self._under_way = 0  # engine's thread adds, ours subtracts: under the lock
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._inbox = collections.deque()
        self._outbox = collections.deque() if listed else None
        self._waiting = {}  # job id → ticket, of our thread
        self._closing = False
        self._broken = None  # the exception that ended our thread, which should not happen
        self._process = os.getpid()
        self.counters = collections.Counter()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._ready = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        weakref.finalize(self, _close_descriptors, self._wake, self._ready)
        for place in memory:
            self._calls.worker.register_memory(*place)
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()
        atexit.register(self.close)  # before the package closes what is open

    # The engine's side: nothing here waits.

    def lookup(self, keys, *, tag=None):
        """Which keys are present; blocks in lower tiers are lifted."""
        return self._submit("lookup", list(keys), tag=tag)

    def put(self, keys, pieces, *, ttl_ms=None, tag=None):
        """Store blocks: per key the list of (address, bytes) that it lies in."""
        return self._submit("put", list(keys), _payloads(pieces), ttl_ms=ttl_ms, tag=tag)

    def get(self, keys, pieces, *, tag=None):
        """Load blocks that are there to where they are wanted."""
        return self._submit("get", list(keys), _payloads(pieces), tag=tag)

    def touch(self, keys, *, ttl_ms=None, tag=None):
        """Mark blocks as just used."""
        return self._submit("touch", list(keys), ttl_ms=ttl_ms, tag=tag)

    def wait(self, ticket):
        """For threads that may wait: until a ticket is done. Deadlines of jobs and calls bound it."""
        ticket.event.wait()

    def finished(self):
        """Tickets that ended since the last call, each once."""
        try:
            os.eventfd_read(self._ready)
        except BlockingIOError:
            pass
        tickets = []
        while self._outbox:
            tickets.append(self._outbox.popleft())
        return tickets

    def announce(self):
        """Make the descriptor readable for something that the caller has to tell."""
        os.eventfd_write(self._ready, 1)

    def idle(self):
        """For threads that may wait: until nothing is under way; deadlines of jobs bound it."""
        with self._idle:
            self._idle.wait_for(lambda: self._under_way == 0)

    def fileno(self):
        """Readable while finished() has something."""
        return self._ready

    @property
    def under_way(self):
        """Tickets that are not done."""
        return self._under_way

    def close(self, timeout=None):
        """End what is under way (deadlines of jobs bound it) and give everything back.

        Returns whether that was done within the timeout in seconds; memory that payloads lie in must
        stay until it is. Tickets are done afterwards, as always.
        """
        if os.getpid() != self._process:
            return True  # all of it is the parent's, and the lock may be held by a thread that is not here
        with self._lock:
            self._closing = True
        os.eventfd_write(self._wake, 1)
        self._thread.join(timeout)
        if self._thread.is_alive():
            return False
        atexit.unregister(self.close)
        return True

    def _submit(self, kind, keys, *payloads, ttl_ms=None, tag=None):
        if os.getpid() != self._process:
            raise UnsupportedError("made before a fork, and its thread is in the parent: make another one")
        # Nothing of a generator runs before our thread starts it.
        ticket = Ticket(kind, keys, getattr(self._calls, kind)(keys, *payloads, ttl_ms=ttl_ms), tag)
        with self._lock:
            accepted = not self._closing and self._under_way < self._limit
            if accepted:
                self._under_way += 1
                self._inbox.append(ticket)
        if accepted:
            os.eventfd_write(self._wake, 1)
        else:
            self._end(ticket, None, self._refusal(), False)
        return ticket

    def _refusal(self):
        if self._broken is not None:
            return Busy(f"the thread ended: {self._broken!r}")
        return Busy("closing" if self._closing else "too much is under way")

    def _end(self, ticket, hits, error, counted=True):
        if error is not None:
            hits = [False] * len(ticket.keys)
        ticket.hits, ticket.error, ticket.call = hits, error, None
        self.counters[f"{ticket.kind}_errors" if error is not None else f"{ticket.kind}s"] += 1
        if hits is not None:
            self.counters[f"{ticket.kind}_hits"] += sum(hits)
            self.counters[f"{ticket.kind}_keys"] += len(hits)
        with self._lock:
            if counted:
                self._under_way -= 1
                self._idle.notify_all()
            if self._outbox is not None:
                self._outbox.append(ticket)
            ticket.done = True
        if self._outbox is not None:
            os.eventfd_write(self._ready, 1)
        ticket.event.set()

    # Our thread's side: a ticket goes on when the event of the job that it waits for is there.

    def _main(self):
        try:
            self._serve()
        except BaseException as error:
            # Nobody may wait for ever. The assembler waits for its jobs before the tickets end.
            with self._lock:
                self._closing, self._broken = True, error
            self._assembler.close()
            left = [*self._waiting.values(), *self._inbox]
            self._waiting.clear()
            self._inbox.clear()
            for ticket in left:
                self._end(ticket, None, self._refusal())
            raise
        self._assembler.close()

    def _serve(self):
        descriptor = self._calls.worker.event_fd()
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        if descriptor >= 0:
            poll.register(descriptor, select.POLLIN)
        while True:
            poll.poll(1 if descriptor < 0 and self._waiting else 1000)
            try:
                os.eventfd_read(self._wake)
            except BlockingIOError:
                pass
            for event in self._calls.worker.get_finished():
                self._step(self._waiting.pop(event.job_id), event)
            while self._inbox:
                self._step(self._inbox.popleft(), None)
            with self._lock:
                if self._closing and self._under_way == 0:
                    return

    def _step(self, ticket, event):
        try:
            self._waiting[ticket.call.send(event)] = ticket
        except StopIteration as end:
            self._end(ticket, end.value, None)
        except Exception as error:  # whatever it is, it is the ticket's: the thread goes on
            self._end(ticket, None, error)


def _payloads(pieces):
    return [BlockPayload([address for address, _ in block], [length for _, length in block])
            for block in pieces]


def _close_descriptors(*descriptors):
    for descriptor in descriptors:
        os.close(descriptor)
