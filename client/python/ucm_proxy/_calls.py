# SPDX-License-Identifier: Apache-2.0
"""Lookups, puts, gets and touches as sequences of calls of the two interfaces, whoever waits for their jobs.

Each is a generator: it yields the number of a job that it has submitted, wants that job's event sent in, and
returns a bool per key. Client waits for one job after the other, Background runs many side by side. What is
thrown in at a yield must come after the event, since the windows around the job are concluded then.
"""

import itertools
import os

from ucm_proxy._native import Error, NotFoundError, RequestContext, RetryError

_GET_ROUNDS = 8
_PREFETCH_ROUNDS = 64  # a topology of n tiers asks at most n times per lookup; more is its fault


class Calls:
    """Calls over an assembler. Keys are block ids of 16 bytes, in a list.

    name: what requests are called, in the servers' logs too. io: the IoContext of every transfer.
    """

    def __init__(self, assembler, *, name, io=None):
        self.scheduler = assembler.get_scheduler()
        self.worker = assembler.get_worker()
        self._name = name
        self._io = io
        self._serial = itertools.count(1)

    def lookup(self, keys, ttl_ms=None):
        """Which keys are present; blocks that wait in lower tiers are lifted first."""
        if not keys:
            return []
        with self._request(ttl_ms) as request:
            hits = yield from self._hits(request, keys)
        return [hit == 1 for hit in hits]

    def touch(self, keys, ttl_ms=None):
        """Mark keys as just used. Nothing is waited for."""
        yield from ()
        if keys:
            with self._request(ttl_ms) as request:
                self.scheduler.touch(request, b"".join(keys))
        return [True] * len(keys)

    def put(self, keys, payloads, ttl_ms=None, io=None):
        """Store blocks; True for those that are in the store now. io: instead of that of every transfer."""
        if not keys:
            return []
        with self._request(ttl_ms) as request:
            token = self.scheduler.prepare_put(request, b"".join(keys))
            stored = [False] * len(keys)
            try:
                stored = yield from self._move(self.worker.submit_put, payloads, token, io)
            finally:
                try:
                    self.scheduler.complete_put(request, bytes(stored))
                except NotFoundError:  # a server was lost: nobody can say which blocks are there
                    stored = [False] * len(keys)
        return stored

    def get(self, keys, payloads, ttl_ms=None, io=None):
        """Load the blocks that are there; True for those that were. io: as for put()."""
        if not keys:
            return []
        with self._request(ttl_ms) as request:
            wanted, token = yield from self._pin(request, keys)
            if not wanted:
                return [False] * len(keys)
            try:
                moved = yield from self._move(self.worker.submit_get, [payloads[idx] for idx in wanted], token,
                                              io)
            finally:
                self.scheduler.complete_get(request)
        loaded = {idx for idx, ok in zip(wanted, moved) if ok}
        return [idx in loaded for idx in range(len(keys))]

    def _request(self, ttl_ms):
        return _Request(self.scheduler, f"{self._name}-{os.getpid()}-{next(self._serial)}", ttl_ms)

    def _hits(self, request, keys):
        keys = b"".join(keys)
        for _ in range(_PREFETCH_ROUNDS):
            hits = self.scheduler.lookup(request, keys)
            if hits is not None:
                return hits
            token = self.scheduler.prepare_prefetch(request)
            success = False
            try:
                job_id = next(self._serial)
                self.worker.submit_prefetch(job_id, token)
                success = (yield job_id).success
            finally:
                self.scheduler.complete_prefetch(request, success)
        raise RetryError("the topology asks for one prefetch after the other")

    def _pin(self, request, keys):
        """Indices of the keys that are present, and the token of an open get; none without any."""
        for _ in range(_GET_ROUNDS):
            hits = yield from self._hits(request, keys)
            wanted = [idx for idx, hit in enumerate(hits) if hit == 1]
            if not wanted:
                break
            try:
                return wanted, self.scheduler.prepare_get(request, b"".join(keys[idx] for idx in wanted))
            except NotFoundError:  # evicted in between: look again
                continue
        return [], None

    def _move(self, submit, payloads, token, io):
        job_id = next(self._serial)
        submit(job_id, payloads, token, self._io if io is None else io)
        event = yield job_id
        if event.success or event.blocks is None:
            return [event.success] * len(payloads)
        return [bit == 1 for bit in event.blocks]


class _Request:
    """A request of the scheduler for the span of a with statement."""

    def __init__(self, scheduler, name, ttl_ms):
        self._scheduler = scheduler
        self._context = RequestContext(name, ttl_ms)

    def __enter__(self):
        self._scheduler.on_new_request(self._context)
        return self._context.request_id

    def __exit__(self, kind, error, traceback):
        try:
            self._scheduler.on_request_finished(self._context.request_id)
        except Error:
            if error is None:  # else it would hide what happened first
                raise
