# SPDX-License-Identifier: Apache-2.0
"""kill -9 and restart of the server: misses, reconnection, and no stale token that reads or writes."""

import harness
from harness import NodeError


class RestartedServer(harness.Case):
    def setUp(self):
        super().setUp()
        self.port = harness.free_port()

    def test_clients_miss_reconnect_and_go_on(self):
        first = harness.Server(self.folder, port=self.port)
        one = self.pair(first)
        one.put(0, 8)
        request = one.request()
        read_token = one.scheduler.do("prepare_get", request, 0, 8)
        write_token = one.scheduler.do("prepare_put", request, 100, 4)
        first.kill()
        harness.eventually(lambda: one.hits(0, 8) == "0" * 8, "misses while the server is away", 5)
        with self.assertRaises(NodeError) as caught:
            one.put(50, 1)
        self.assertEqual(caught.exception.status, "Unhealthy")

        second = self.server(port=self.port)
        try:
            harness.eventually(lambda: self.works(one, 200), "reconnected", 30)
        except AssertionError as error:
            raise AssertionError(f"{error}; the last outcome: {self.outcome}") from None
        other = self.pair(second)
        self.assertEqual(other.put(300, 900)[0], "Ok")  # owns most slots by now
        for job, what, first_id, count, token in ((1, "get", 0, 8, read_token),
                                                  (2, "put", 100, 4, write_token)):
            one.worker.do(what, job, first_id, count, token)
            status, bits, _, wrong = one.worker.wait(job)
            self.assertNotEqual(status, "Ok")
            self.assertEqual((bits, wrong), ("0" * count, 0))
        one.scheduler.do("complete_get", request)
        with self.assertRaises(NodeError):
            one.scheduler.do("complete_put", request, 1)
        one.scheduler.do("finish", request)
        self.assertEqual(other.get(300, 900)[2:], (900, 0))
        self.assertEqual(one.hits(100, 4), "0000")
        second.quiet()

    def works(self, pair, first):
        try:
            self.outcome = (pair.put(first, 4), pair.get(first, 4))
        except NodeError as error:
            self.outcome = error
            return False
        return self.outcome == (("Ok", "1111", 0, 0), ("Ok", "1111", 4, 0))

    def test_sigterm_drains_and_exits_with_0(self):
        server = self.server()
        one = self.pair(server)
        one.put(0, 4)
        self.assertEqual(server.stop(), 0)
        self.assertEqual(one.hits(0, 4), "0000")

    def test_jobs_in_flight_end_when_the_server_dies(self):  # G15
        server = harness.Server(self.folder, block_bytes=1 << 20, capacity_blocks=64)
        one = self.pair(server, block_bytes=1 << 20)
        request = one.request()
        token = one.scheduler.do("prepare_put", request, 0, 64)
        one.worker.send("put", 1, 0, 64, token)
        server.kill()
        one.worker.answer()
        status, _, _, _ = one.worker.wait(1, 10000)
        self.assertIn(status, ("Unhealthy", "Ok"))
        with self.assertRaises(NodeError):  # the state is erased, the store's error is told
            one.scheduler.do("finish", request)
        one.scheduler.do("request", request)
        server.stop()


if __name__ == "__main__":
    harness.main()
