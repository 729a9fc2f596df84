# SPDX-License-Identifier: Apache-2.0
"""
SIGSTOP of a worker in the middle of its writes, until after its attachment was fenced and its slots
have new owners; then SIGCONT: not one foreign byte.
"""

import signal
import time

import harness
import rpc
from harness import ADDRESS, PATIENCE, NodeError

# So much that the writes take long enough to be stopped in; emulated machines are slower.
BLOCK = 4 << 20 if PATIENCE == 1 else 1 << 20
COUNT = 48
MOMENTS = 4 if PATIENCE == 1 else 2
# Long enough for the pings of busy machines.
LEASE_S = 3 if PATIENCE == 1 else 8


class StoppedWorker(harness.Case):
    def setUp(self):
        super().setUp()
        self.one = self.server(block_bytes=BLOCK, capacity_blocks=COUNT, lease=f"{LEASE_S}s")

    def stat(self):
        """Faster than the command line tool; a connection each, since leases are short here."""
        with rpc.Client(ADDRESS, self.one.port) as control:
            control.hello("ro")
            return control.call("stat", [])

    def stop_in_the_middle(self, delay):
        """Returns how the job of the stopped worker ended."""
        victim = self.pair(self.one, block_bytes=BLOCK, timeout_ms=int(60000 * PATIENCE))
        other = self.pair(self.one, block_bytes=BLOCK)
        request = victim.request()
        token = victim.scheduler.do("prepare_put", request, 0, COUNT)
        fences = self.stat()["fences_total"]
        victim.worker.send("put", 1, 0, COUNT, token)
        harness.eventually(lambda: self.stat()["open_brackets"] > 0, "writing")
        time.sleep(delay)
        victim.worker.signal(signal.SIGSTOP)
        try:
            harness.eventually(lambda: self.stat()["fences_total"] > fences, "fenced", 30)
            harness.eventually(lambda: self.stat()["open_brackets"] == 0, "brackets ended")
            try:
                victim.scheduler.do("complete_put", request, 1)
            except NodeError as error:
                self.assertEqual(error.status, "InvalidParam")
            victim.scheduler.do("finish", request)
            self.one.quiet()
            # Every slot gets a new owner.
            self.assertEqual(other.put(1000, COUNT)[:2], ("Ok", "1" * COUNT))
        finally:
            victim.worker.signal(signal.SIGCONT)
        for _ in range(3):
            self.assertEqual(other.get(1000, COUNT), ("Ok", "1" * COUNT, COUNT, 0))
        self.assertEqual(victim.worker.answer(), "")
        status, bits, _, _ = victim.worker.wait(1)
        if status == "Ok":
            self.assertEqual(bits, "1" * COUNT)  # it had finished before it was stopped
        self.assertEqual(other.get(1000, COUNT), ("Ok", "1" * COUNT, COUNT, 0))
        harness.eventually(lambda: self.usable(victim), "the stopped worker works again", 30)
        self.one.quiet()
        victim.close()
        other.close()
        return status

    @staticmethod
    def usable(pair):
        try:
            return pair.put(2000, 1)[:2] == ("Ok", "1")
        except NodeError:
            return False

    def test_stopped_in_the_middle_of_writes(self):
        statuses = [self.stop_in_the_middle(0.004 * moment) for moment in range(MOMENTS)]
        print("jobs of the stopped workers ended as", statuses)
        self.assertIn("Unhealthy", statuses, "no worker was stopped in the middle of its writes")


if __name__ == "__main__":
    harness.main()
