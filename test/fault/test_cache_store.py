# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the scheduler and worker processes of a cache store: dead workers block no slot, a dead scheduler's segment is
replaced, live processes follow, nobody reads the bytes of another life."""

import os
import pathlib
import random
import subprocess
import time
import unittest

from harness import BIN, PATIENCE

PROGRAM = str(BIN.parent / "test" / "ucm-test-cache")
BLOCKS = 4  # of the program's store
ROUNDS = 20 if PATIENCE == 1 else 5


class Side:
    """A process with one side of the store; ask() sends a line and returns the answer."""

    def __init__(self, role, domain):
        self.process = subprocess.Popen([PROGRAM, role, domain], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.greeting = self.process.stdout.readline().strip()

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def kill(self):
        self.process.kill()
        self.close()

    def end(self):
        self.process.stdin.close()
        self.process.wait(30 * PATIENCE)
        self.process.stdout.close()

    def close(self):
        self.process.wait(30 * PATIENCE)
        self.process.stdin.close()
        self.process.stdout.close()


class CacheStore(unittest.TestCase):
    def setUp(self):
        self.domain = f"fault-{os.getpid()}-{self._testMethodName[-20:]}"
        self.segment = pathlib.Path("/dev/shm", f"ucm-cache-{self.domain}")
        self.addCleanup(lambda: self.segment.unlink(missing_ok=True))

    def start(self, role):
        side = Side(role, self.domain)
        self.addCleanup(lambda: side.process.poll() is None and side.kill())
        self.assertEqual(side.greeting, "ready")
        return side

    def put(self, scheduler, worker, number):
        self.assertEqual(worker.ask("dump", number, scheduler.ask("alloc", number)), "Ok")
        self.assertEqual(scheduler.ask("commit", 1), "Ok")

    def get(self, scheduler, worker, number):
        token = scheduler.ask("pin", number)
        if token == "-":
            return None
        answer = worker.ask("load", number, token)
        scheduler.ask("unpin")
        return answer

    # whatever the moment, every slot can be used again at once.
    def test_killed_worker_blocks_no_slot(self):
        scheduler = self.start("scheduler")
        worker = self.start("worker")
        source = random.Random(7)
        self.put(scheduler, worker, 1)
        for _ in range(ROUNDS):
            victim = self.start("worker")
            self.assertEqual(victim.ask("hammer", 1, scheduler.ask("pin", 1)), "started")
            time.sleep(source.random() * 0.02)  # the moment of the kill is what varies
            victim.kill()
            scheduler.ask("unpin")
            for number in range(10, 10 + BLOCKS):
                self.put(scheduler, worker, number)
            self.assertIsNone(self.get(scheduler, worker, 1))
            self.put(scheduler, worker, 1)
            self.assertEqual(self.get(scheduler, worker, 1), "Ok")
        for key in ("draining", "pinned", "reserved"):
            self.assertEqual(scheduler.ask("number", key), "0")
        worker.end()
        scheduler.end()
        self.assertFalse(self.segment.exists())

    # the next scheduler starts empty; live workers follow; older tokens are misses.
    def test_killed_scheduler_is_replaced(self):
        worker = self.start("worker")
        for number in range(1, 1 + ROUNDS):
            scheduler = self.start("scheduler")
            self.assertIsNone(self.get(scheduler, worker, number - 1))
            self.put(scheduler, worker, number)
            self.assertEqual(self.get(scheduler, worker, number), "Ok")
            old = scheduler.ask("pin", number)
            scheduler.kill()
            self.assertTrue(self.segment.exists())
            successor = self.start("scheduler")
            self.put(successor, worker, 500)
            self.assertEqual(worker.ask("load", number, old), "NotFound")
            self.assertEqual(self.get(successor, worker, 500), "Ok")
            successor.end()
            self.assertFalse(self.segment.exists())
        worker.end()

    # A live owner's segment is never touched.
    def test_live_scheduler_keeps_its_segment(self):
        scheduler = self.start("scheduler")
        worker = self.start("worker")
        self.put(scheduler, worker, 1)
        second = Side("scheduler", self.domain)
        self.assertIn("domain", second.greeting)
        second.close()
        self.assertEqual(self.get(scheduler, worker, 1), "Ok")
        worker.end()
        scheduler.end()


if __name__ == "__main__":
    unittest.main()
