# SPDX-License-Identifier: Apache-2.0
"""
Server, scheduler or worker killed, or stopped for longer than its lease, after every step of a put and of a
get: what is read is what was put or nothing, and nothing stays reserved.
"""

import contextlib
import signal
import time

import harness
from harness import PATIENCE, NodeError

COUNT = 8
LEASE_S = 1 if PATIENCE == 1 else 4
STEPS = {"put": ("prepare_put", "submit", "wait", "complete_put"),
         "get": ("prepare_get", "submit", "wait", "complete_get")}
# What a call to a party that is gone may say.
LOST = (NodeError, OSError, AssertionError)


class EveryStep(harness.Case):
    def setUp(self):
        super().setUp()
        self.keys = {"capacity_blocks": 64, "lease": f"{LEASE_S}s", "port": harness.free_port()}
        self.one = harness.Server(self.folder, **self.keys)
        self.stack.callback(lambda: self.one.stop())
        self.other = self.pair(self.one)
        self.first = 0

    def disturb(self, victim, who, kill):
        party = {"server": self.one, "scheduler": victim.scheduler, "worker": victim.worker}[who]
        if kill:
            party.kill()
            if who == "server":
                self.one.stop()
                self.one = harness.Server(self.folder, **self.keys)
            return
        party.process.send_signal(signal.SIGSTOP)
        time.sleep(1.3 * LEASE_S)  # the fault itself, not a wait for something
        party.process.send_signal(signal.SIGCONT)

    def window(self, victim, flow, after, disturb):
        """Go through the steps, as far as they go; @return wrong bytes that the worker saw."""
        request = victim.request()
        prepare, _, _, complete = STEPS[flow]
        token = victim.scheduler.do(prepare, request, self.first, COUNT)
        wrong = 0
        if after == prepare:
            disturb()
        with contextlib.suppress(*LOST):
            victim.worker.do(flow, 1, self.first, COUNT, token)
            if after == "submit":
                disturb()
            wrong = victim.worker.wait(1)[3]
            if after == "wait":
                disturb()
        with contextlib.suppress(*LOST):
            victim.scheduler.do(complete, request, *([1] if flow == "put" else []))
            if after == complete:
                disturb()
        with contextlib.suppress(*LOST):
            victim.scheduler.do("finish", request)
        return wrong

    def settled(self):
        """The other pair reads all, and all of it right, or is told that it is missing."""
        try:
            status, _, good, wrong = self.other.get(self.first, COUNT)
        except NodeError as error:
            return error.status == "NotFound"
        self.assertEqual(wrong, 0)
        return status == "Ok" and good == COUNT

    @staticmethod
    def end(victim):
        for node in (victim.scheduler, victim.worker):
            with contextlib.suppress(OSError):
                node.process.stdin.close()
            node.process.wait(timeout=60 * PATIENCE)
            node.process.stdout.close()

    def go_through(self, who, kill):
        for flow, steps in STEPS.items():
            for after in steps:
                with self.subTest(who=who, kill=kill, flow=flow, after=after):
                    self.first += 100
                    victim = harness.Pair(self.folder, self.one.address)
                    self.addCleanup(victim.scheduler.process.kill)
                    self.addCleanup(victim.worker.process.kill)
                    if flow == "get":
                        victim.put(self.first, COUNT)
                    wrong = self.window(victim, flow, after,
                                        lambda: self.disturb(victim, who, kill))
                    self.assertEqual(wrong, 0)
                    self.end(victim)
                    harness.eventually(self.settled, "all or nothing")
                    self.one.quiet()

    def test_killed(self):
        for who in ("server", "scheduler", "worker"):
            self.go_through(who, True)

    def test_stopped(self):
        for who in ("server", "scheduler", "worker"):
            self.go_through(who, False)


if __name__ == "__main__":
    harness.main()
