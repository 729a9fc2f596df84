# SPDX-License-Identifier: Apache-2.0
"""
A worker stopped or killed in a stream of writes or reads, at a random moment. The server fences it when its
lease ends and gives its slots to others; then the worker goes on. Not one of its bytes may be in a slot that has
a new owner, and none of the new owner's in a read that it takes for a success.

UCM_TEST_REPEAT: repetitions of each kind (3; the long run is 100). UCM_TEST_SEED: of the moments.
"""

import collections
import os
import random
import signal
import time

import harness
import rpc
from harness import ADDRESS, PATIENCE, NodeError

REPEAT = int(os.environ.get("UCM_TEST_REPEAT", "3"))
SEED = int(os.environ.get("UCM_TEST_SEED", "1"))
BLOCK = 1 << 20 if PATIENCE == 1 else 1 << 18
COUNT = 64
LEASE_MS = int(300 * PATIENCE)


class Fence(harness.Case):
    def setUp(self):
        super().setUp()
        # All slots are in use: what is put next takes the slots of what was there before.
        self.one = self.server(block_bytes=BLOCK, capacity_blocks=COUNT, lease=f"{LEASE_MS}ms")
        self.other = self.pair(self.one, block_bytes=BLOCK)
        self.random = random.Random(SEED)
        self.first = 0
        self.durations = {}
        self.statuses = collections.Counter()
        self.late_blocks = 0
        self.honest_errors = 0
        self.checked_bytes = 0
        for flow in ("put", "get"):
            self.durations[flow] = self.duration(flow)

    def stat(self):
        with rpc.Client(ADDRESS, self.one.port) as control:
            control.hello("ro")
            return control.call("stat", [])

    def fill(self):
        """Every slot gets a new owner. A busy machine may be late with its pings: then once more."""
        def filled():
            self.first += 1000
            try:
                return self.other.put(self.first, COUNT)[:2] == ("Ok", "1" * COUNT)
            except NodeError:
                self.honest_errors += 1
                return False
        harness.eventually(filled, "all slots filled", 30)

    def check(self):
        """Every byte of every slot is its owner's."""
        def read():
            try:
                status, _, good, wrong = self.other.get(self.first, COUNT)
            except NodeError as error:
                self.assertNotEqual(error.status, "NotFound", "a block of the new owner is lost")
                self.honest_errors += 1
                return False
            self.assertEqual(wrong, 0, "foreign bytes")
            self.assertNotEqual(status, "NotFound", "the new owner's bytes are damaged")
            return good == COUNT
        harness.eventually(read, "all slots read", 30)
        self.checked_bytes += COUNT * BLOCK

    def start(self, victim, flow):
        """A stream of the victim under way; its request, and the first key."""
        request = victim.request()
        if flow == "get":
            self.fill()
        first = self.first if flow == "get" else self.first + 500
        token = victim.scheduler.do(f"prepare_{flow}", request, first, COUNT)
        victim.worker.send(flow, 1, first, COUNT, token, int(60000 * PATIENCE))
        return request

    @staticmethod
    def attached(victim):
        try:
            return victim.put(1, 1)[0] == "Ok"
        except NodeError:
            return False

    def conclude(self, victim, flow, request):
        for words in ((f"complete_{flow}", request, *([1] if flow == "put" else [])),
                      ("finish", request)):
            try:
                victim.scheduler.do(*words)
            except NodeError as error:
                self.assertIn(error.status, ("InvalidParam", "NotFound", "Unhealthy"))

    def duration(self, flow):
        """How long the stream takes when nobody disturbs it: the range of the moments."""
        victim = self.pair(self.one, block_bytes=BLOCK)
        request = self.start(victim, flow)
        victim.worker.answer()
        begin = time.monotonic()
        victim.worker.wait(1)
        seconds = time.monotonic() - begin
        self.conclude(victim, flow, request)
        victim.close()
        return seconds

    def disturb(self, flow, number):
        victim = self.pair(self.one, block_bytes=BLOCK)
        # Attached before anything happens: whom the server does not know yet, it need not fence.
        harness.eventually(lambda: self.attached(victim), "the victim is attached", 30)
        fences = self.stat()["fences_total"]
        request = self.start(victim, flow)
        victim.worker.answer()  # the job is submitted
        time.sleep(self.random.random() * self.durations[flow])  # the fault itself
        victim.worker.signal(number)
        try:
            harness.eventually(lambda: self.stat()["fences_total"] > fences or
                               number == signal.SIGKILL, "fenced", 30)
            harness.eventually(lambda: self.stat()["open_brackets"] == 0, "brackets ended", 30)
            self.conclude(victim, flow, request)
            self.one.quiet(30)
            self.fill()
            self.check()
        finally:
            victim.worker.signal(signal.SIGCONT)
        if number == signal.SIGKILL:
            victim.worker.kill()
            self.statuses["killed"] += 1
        else:
            # All of its operations end, and what it takes for a success is what was there for it.
            status, bits, good, wrong = victim.worker.wait(1)
            self.assertEqual(wrong, 0, "a read succeeded with bytes of the new owner")
            if flow == "get":
                self.assertEqual(good, bits.count("1"))
            elif status == "Ok":
                self.assertEqual(bits, "1" * COUNT)  # it had finished before it was stopped
            self.statuses[status] += 1
            self.late_blocks += bits.count("0")
        self.check()
        self.one.quiet(30)
        victim.close()

    def repeat(self, flow, number):
        for _ in range(REPEAT):
            self.disturb(flow, number)
        print(f"{harness.FABRIC} {flow} {number.name}: {REPEAT} times, seed {SEED}, "
              f"{self.durations[flow] * 1000:.0f} ms undisturbed, lease {LEASE_MS} ms, too short for "
              f"{self.honest_errors} calls of honest nodes; ended as {dict(self.statuses)}, "
              f"{self.late_blocks} of {REPEAT * COUNT} blocks cut off; "
              f"{self.checked_bytes >> 20} MiB of new owners checked, 0 foreign bytes")
        if number == signal.SIGSTOP and REPEAT >= 10:
            self.assertGreater(self.late_blocks, 0, "no moment was in the middle")

    def test_writer_stopped(self):
        self.repeat("put", signal.SIGSTOP)

    def test_reader_stopped(self):
        self.repeat("get", signal.SIGSTOP)

    def test_writer_killed(self):
        self.repeat("put", signal.SIGKILL)

    def test_reader_killed(self):
        self.repeat("get", signal.SIGKILL)


if __name__ == "__main__":
    harness.main()
