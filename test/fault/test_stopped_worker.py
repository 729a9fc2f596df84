# SPDX-License-Identifier: Apache-2.0
"""
SIGSTOP of a worker in the middle of its writes, until after its attachment was fenced and its slots
have new owners; then SIGCONT: not one foreign byte.
"""

import signal
import time

import harness
from harness import PATIENCE, NodeError

BLOCK = 1 << 20
COUNT = 32


class StoppedWorker(harness.Case):
    def stop_in_the_middle(self, delay):
        server = self.server(block_bytes=BLOCK, capacity_blocks=COUNT, lease="1s")
        victim = self.pair(server, block_bytes=BLOCK, timeout_ms=int(60000 * PATIENCE))
        other = self.pair(server, block_bytes=BLOCK)
        request = victim.request()
        token = victim.scheduler.do("prepare_put", request, 0, COUNT)
        fences = server.stat()["fences_total"]
        victim.worker.send("put", 1, 0, COUNT, token)
        harness.eventually(lambda: server.stat()["open_brackets"] > 0 or delay == 0, "writing")
        time.sleep(delay * PATIENCE)
        victim.worker.signal(signal.SIGSTOP)
        try:
            harness.eventually(lambda: server.stat()["fences_total"] > fences, "fenced", 30)
            harness.eventually(lambda: server.stat()["open_brackets"] == 0, "brackets ended")
            try:
                victim.scheduler.do("complete_put", request, 1)
            except NodeError as error:
                self.assertEqual(error.status, "InvalidParam")
            victim.scheduler.do("finish", request)
            server.quiet()
            # Every slot gets a new owner.
            self.assertEqual(other.put(1000, COUNT)[:2], ("Ok", "1" * COUNT))
        finally:
            victim.worker.signal(signal.SIGCONT)
        for _ in range(5):
            self.assertEqual(other.get(1000, COUNT), ("Ok", "1" * COUNT, COUNT, 0))
        self.assertEqual(victim.worker.answer(), "")
        status, bits, _, _ = victim.worker.wait(1)
        if status == "Ok":
            # It had finished before it was stopped: then the blocks were committed and evicted since.
            self.assertEqual(bits, "1" * COUNT)
        self.assertEqual(other.get(1000, COUNT), ("Ok", "1" * COUNT, COUNT, 0))
        # The stopped worker is of use again.
        harness.eventually(lambda: self.usable(victim), "the stopped worker works again", 30)
        server.quiet()
        return status

    @staticmethod
    def usable(pair):
        try:
            return pair.put(2000, 1)[:2] == ("Ok", "1")
        except NodeError:
            return False

    def test_stopped_in_the_middle_of_writes(self):
        statuses = [self.stop_in_the_middle(delay) for delay in (0.0, 0.002, 0.01)]
        print("job of the stopped worker ended as", statuses)


if __name__ == "__main__":
    harness.main()
