# SPDX-License-Identifier: Apache-2.0
"""
A server that is stopped, or runs in fits: every job ends within its deadline or a little later, nothing is left
behind, and what is read is right.
"""

import os
import signal
import time

import harness
from harness import PATIENCE, NodeError

COUNT = 16
JOBS = 6
DEADLINE_MS = int(400 * PATIENCE)
# Not a limit of the test, but far from it: no job may wait for an answer longer than its deadline.
RPC_TIMEOUT = "300s"
ENDS = ("Ok", "Timeout", "Unhealthy")


class StoppedServer(harness.Case):
    def setUp(self):
        super().setUp()
        self.one = self.server(block_bytes=1 << 18, capacity_blocks=400, lease=f"{int(2 * PATIENCE)}s")
        self.worker = harness.Pair(self.folder, self.one.address, block_bytes=1 << 18,
                                   rpc_timeout=RPC_TIMEOUT)
        self.stack.callback(self.worker.close)
        self.first = 0

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.worker.worker.process.pid}/fd"))

    def usable(self):
        self.first += 100
        try:
            return (self.worker.put(self.first, COUNT)[0] == "Ok" and
                    self.worker.get(self.first, COUNT)[:1] == ("Ok",))
        except NodeError:
            return False

    def submit(self, flow, job):
        """A job with a deadline; its request."""
        self.first += 100 if flow == "put" else 0
        request = self.worker.request()
        token = self.worker.scheduler.do(f"prepare_{flow}", request, self.first, COUNT)
        return request, (flow, job, self.first, COUNT, token, DEADLINE_MS)

    def conclude(self, flow, request):
        for words in ((f"complete_{flow}", request, *([0] if flow == "put" else [])),
                      ("finish", request)):
            try:
                self.worker.scheduler.do(*words)
            except NodeError:
                pass  # its session was lost meanwhile

    def stopped(self, flow, resume_after):
        """Jobs submitted to a stopped server; it goes on before or after they have ended."""
        jobs = [self.submit(flow, job) for job in range(1, JOBS + 1)]
        self.one.process.send_signal(signal.SIGSTOP)
        try:
            for _, words in jobs:
                self.worker.worker.do(*words)
            if resume_after:
                time.sleep(resume_after)  # the fault itself
                self.one.process.send_signal(signal.SIGCONT)
            for job in range(1, JOBS + 1):
                status, _, _, wrong = self.worker.worker.wait(job, 20000)
                self.assertIn(status, ENDS)
                self.assertEqual(wrong, 0)
                if not resume_after and harness.FABRIC != "verbs" and flow == "put":
                    self.assertNotEqual(status, "Ok")
        finally:
            self.one.process.send_signal(signal.SIGCONT)
        for request, _ in jobs:
            self.conclude(flow, request)

    def test_stopped(self):
        harness.eventually(self.usable, "works")
        before = self.descriptors()
        for flow in ("put", "get"):
            for resume_after in (0, 0.5 * DEADLINE_MS / 1000):
                with self.subTest(flow=flow, resume_after=resume_after):
                    self.stopped(flow, resume_after)
                    harness.eventually(self.usable, "works again", 30)
                    self.one.quiet(30)
        harness.eventually(lambda: self.descriptors() <= before, "no descriptor is left", 30)

    def test_slow(self):
        """A server that runs a tenth of the time."""
        harness.eventually(self.usable, "works")
        before = self.descriptors()
        for flow in ("put", "get") * 2:
            jobs = [self.submit(flow, job) for job in range(1, JOBS + 1)]
            for _, words in jobs:
                self.worker.worker.do(*words)
            for _ in range(10):
                self.one.process.send_signal(signal.SIGSTOP)
                time.sleep(0.09)
                self.one.process.send_signal(signal.SIGCONT)
                time.sleep(0.01)
            for job in range(1, JOBS + 1):
                status, _, _, wrong = self.worker.worker.wait(job, 20000)
                self.assertIn(status, ENDS)
                self.assertEqual(wrong, 0)
            for request, _ in jobs:
                self.conclude(flow, request)
            harness.eventually(self.usable, "works again", 30)
        self.one.quiet(30)
        harness.eventually(lambda: self.descriptors() <= before, "no descriptor is left", 30)


if __name__ == "__main__":
    harness.main()
