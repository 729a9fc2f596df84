# SPDX-License-Identifier: Apache-2.0
"""
Two nodes share the prefixes of conversations over three servers while any of the processes is killed, stopped and
continued at random. Whatever is read is right, whatever fails is a miss, and nothing is left behind (G15, G19).

UCM_TEST_SECONDS: how long the faults last (10; the long run is 300). UCM_TEST_SEED: of what happens.
"""

import collections
import contextlib
import os
import random
import signal
import threading
import time
import traceback

import harness
from harness import PATIENCE, NodeError

SECONDS = float(os.environ.get("UCM_TEST_SECONDS", "10"))
SEED = int(os.environ.get("UCM_TEST_SEED", "1"))
BLOCK = 65536
CAPACITY = 120  # of each server; less than the conversations have, so that slots change hands
CONVERSATIONS = 24
LENGTH = 32
LEASE_MS = int(500 * PATIENCE)
JOB_MS = int(2000 * PATIENCE)
# What a caller takes for a miss: not there, its server or session gone, not in time, no slot, and a write of whose
# end its server has not heard.
MISSES = ("NotFound", "Unhealthy", "Stale", "Timeout", "NoSpace", "InvalidParam")


class WrongStatus(Exception):
    """A call ended as it must not."""


class Replay(threading.Thread):
    """One node: requests one after the other. A process that dies is replaced, the node with it."""

    def __init__(self, number, make_pair):
        super().__init__()
        self.random = random.Random(SEED * 1000 + number)
        self.make_pair = make_pair
        self.pair = make_pair()
        self.over = threading.Event()
        self.counts = collections.Counter()
        self.statuses = collections.Counter()
        self.wrong = 0
        self.failure = None

    def processes(self):
        return {"scheduler": self.pair.scheduler.process, "worker": self.pair.worker.process}

    def miss(self, step, error):
        self.statuses[f"{step} {error.status}"] += 1
        if error.status not in MISSES:
            raise WrongStatus(f"{step}: {error}")

    def window(self, flow, request, first, count):
        """The prepare, job and complete of a window; (bits, wrong), or None where it was not opened."""
        job = harness.Pair.job()
        try:
            token = self.pair.scheduler.do(f"prepare_{flow}", request, first, count)
        except NodeError as error:
            self.miss(f"prepare_{flow}", error)
            return None
        bits, wrong = "0" * count, 0
        try:
            self.pair.worker.do(flow, job, first, count, token, JOB_MS)
            status, bits, _, wrong = self.pair.worker.wait(job)
            if status not in ("Ok", *MISSES):
                raise WrongStatus(f"{flow}: {status}")
            self.statuses[f"{flow} {status}"] += 1
        except NodeError as error:
            self.miss(flow, error)
        try:
            self.pair.scheduler.do(f"complete_{flow}", request, *([bits] if flow == "put" else []))
        except NodeError as error:
            self.miss(f"complete_{flow}", error)
        return bits, wrong

    def serve(self):
        """One request: read the prefix that is there, write the rest."""
        first = self.random.randrange(CONVERSATIONS) * 1000
        count = self.random.randint(2, LENGTH)
        request = self.pair.request()
        try:
            there = int(self.pair.scheduler.do("prefix", request, first, count)) + 1
        except NodeError as error:
            self.miss("lookup", error)
            there = 0
        if there > 0:
            result = self.window("get", request, first, there)
            if result is not None:
                self.counts["read"] += result[0].count("1")
                self.counts["missed"] += result[0].count("0")
                self.wrong += result[1]
        if there < count:
            result = self.window("put", request, first + there, count - there)
            if result is not None:
                self.counts["written"] += result[0].count("1")
        self.pair.finish(request)
        self.counts["requests"] += 1

    def replace(self):
        """A process of the node was killed: the other one ends by itself, without being told why."""
        for process in self.processes().values():
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        for process in self.processes().values():
            process.wait(timeout=120 * PATIENCE)
            process.stdout.close()
        self.counts["nodes replaced"] += 1
        self.pair = self.make_pair()

    def await_death(self, error):
        """A node that does not answer was killed, or else it is a failure; its pipes end a moment before it."""
        def ended():
            return any(process.poll() is not None for process in self.processes().values())
        harness.eventually(ended, f"a process ends that gave no answer ({error})", 5)
        codes = {role: process.poll() for role, process in self.processes().items()}
        if not set(codes.values()) <= {None, -signal.SIGKILL}:
            raise WrongStatus(f"{error}: the processes ended with {codes}")

    def run(self):
        try:
            while not self.over.is_set():
                try:
                    self.serve()
                except (AssertionError, OSError) as error:
                    self.await_death(error)
                    self.replace()
        except BaseException as error:  # told to the test, which is in another thread
            self.failure = "".join(traceback.format_exception(error))


class Chaos(harness.Case):
    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        self.faults = collections.Counter()
        self.undo = []  # (when, victim, how to undo)
        self.ports = [harness.free_port() for _ in range(3)]
        self.servers = [self.start(port) for port in self.ports]
        addresses = [server.address for server in self.servers]
        self.replays = [Replay(number, lambda: harness.Pair(
            self.folder, addresses, rpc_timeout=f"{int(250 * PATIENCE)}ms")) for number in range(2)]

    def start(self, port):
        return self.server(port=port, block_bytes=BLOCK, capacity_blocks=CAPACITY, lease=f"{LEASE_MS}ms")

    def restart(self, index):
        self.servers[index] = self.start(self.ports[index])

    def victims(self):
        """Every process, by name."""
        found = {f"server {index}": server.process for index, server in enumerate(self.servers)}
        for index, replay in enumerate(self.replays):
            found.update({f"{role} {index}": process for role, process in replay.processes().items()})
        return found

    def strike(self):
        """One fault to a process that has none; servers come back, nodes are replaced by themselves."""
        busy = [victim for _, victim, _ in self.undo]
        victims = {name: process for name, process in self.victims().items() if name not in busy}
        name = self.random.choice(sorted(victims))
        process = victims[name]
        role, index = name.split(" ")
        # Half of the stops are short; the others outlive the lease, and then the group is fenced.
        seconds = self.random.random() * (0.2 if self.random.random() < 0.5 else 2.5) * LEASE_MS / 1000
        if self.random.random() < 0.35:
            process.kill()
            self.faults[f"{role} killed"] += 1
            if role == "server":
                process.wait()
                self.undo.append((time.monotonic() + seconds, name, lambda: self.restart(int(index))))
        else:
            process.send_signal(signal.SIGSTOP)
            self.faults[f"{role} stopped"] += 1
            self.undo.append((time.monotonic() + seconds, name,
                              lambda: process.send_signal(signal.SIGCONT)))

    def repair(self, until):
        """Undo the faults that are over by then."""
        for fault in [fault for fault in self.undo if fault[0] <= until]:
            fault[2]()
            self.undo.remove(fault)

    def storm(self):
        end = time.monotonic() + SECONDS
        strike = 0
        while time.monotonic() < end and all(replay.is_alive() for replay in self.replays):
            if time.monotonic() >= strike:
                self.strike()
                strike = time.monotonic() + self.random.random() * LEASE_MS / 1000
            self.repair(time.monotonic())
            time.sleep(0.01)  # the pace of the faults

    def end_replays(self):
        for replay in self.replays:
            replay.over.set()
        for replay in self.replays:
            replay.join(300 * PATIENCE)
            self.assertFalse(replay.is_alive(), "a node hangs")
            self.assertIsNone(replay.failure, replay.failure)
            self.assertEqual(replay.wrong, 0, "a read succeeded with wrong bytes")

    def check_whole(self, pair):
        """All servers take part again, and what is left of the storm is right."""
        def works():
            try:
                return (pair.put(10 ** 6, LENGTH)[:2], pair.get(10 ** 6, LENGTH)) == (
                    ("Ok", "1" * LENGTH), ("Ok", "1" * LENGTH, LENGTH, 0))
            except NodeError:
                return False
        harness.eventually(works, "all servers are used again", 30)
        for conversation in range(CONVERSATIONS):
            bits = pair.hits(conversation * 1000, LENGTH)
            for index in [index for index in range(LENGTH) if bits[index] == "1"]:
                self.assertEqual(pair.get(conversation * 1000 + index, 1), ("Ok", "1", 1, 0))
                self.left += 1

    def test_nothing_wrong_and_nothing_left_behind(self):
        for replay in self.replays:
            replay.start()
        try:
            self.storm()
        finally:
            self.repair(float("inf"))
            for replay in self.replays:
                replay.over.set()
        self.end_replays()
        self.left = 0
        pair = harness.Pair(self.folder, [server.address for server in self.servers])
        self.check_whole(pair)
        pair.close()
        for replay in self.replays:
            replay.pair.close()
        for server in self.servers:
            server.quiet(30)
            self.assertEqual(server.stat()["open_brackets"], 0)
        counts = sum((replay.counts for replay in self.replays), collections.Counter())
        statuses = sum((replay.statuses for replay in self.replays), collections.Counter())
        print(f"{harness.FABRIC} {SECONDS:.0f} s, seed {SEED}, lease {LEASE_MS} ms: faults {dict(self.faults)}; "
              f"{dict(counts)}, 0 wrong; {dict(sorted(statuses.items()))}; {self.left} blocks left, all right")
        self.assertGreater(counts["read"], 0)
        self.assertGreater(counts["written"], 0)


if __name__ == "__main__":
    harness.main()
