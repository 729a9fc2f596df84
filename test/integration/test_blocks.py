# SPDX-License-Identifier: Apache-2.0
"""Blocks between processes: visibility, sharing, damaged bytes, stale and altered tokens."""

import random

import harness
from harness import BLOCK, NodeError


class Blocks(harness.Case):
    def test_other_node_reads_what_one_wrote(self):
        server = self.server()
        one, two = self.pair(server), self.pair(server)
        self.assertEqual(one.put(0, 20)[:2], ("Ok", "1" * 20))
        self.assertEqual(two.hits(0, 21), "1" * 20 + "0")
        self.assertEqual(two.get(0, 20), ("Ok", "1" * 20, 20, 0))
        server.quiet()

    def test_reserved_blocks_are_invisible(self):  # G2
        server = self.server()
        one = self.pair(server)
        request = one.request()
        token = one.scheduler.do("prepare_put", request, 0, 4)
        self.assertEqual(one.hits(0, 4), "0000")
        one.worker.do("put", 900, 0, 4, token)
        one.worker.wait(900)
        self.assertEqual(one.hits(0, 4), "0000")
        one.scheduler.do("complete_put", request, 1)
        self.assertEqual(one.hits(0, 4), "1111")

    def test_commit_without_any_dump_leaves_the_blocks_invisible(self):  # G2
        server = self.server()
        one = self.pair(server)
        request = one.request()
        one.scheduler.do("prepare_put", request, 0, 4)
        with self.assertRaises(NodeError) as caught:
            one.scheduler.do("complete_put", request, 1)
        self.assertEqual(caught.exception.status, "InvalidParam")
        one.scheduler.do("finish", request)
        self.assertEqual(one.hits(0, 4), "0000")
        server.quiet()
        self.assertEqual(one.put(0, 4)[0], "Ok")
        self.assertEqual(one.hits(0, 4), "1111")

    def test_ttl_of_zero_expires_at_commit(self):
        server = self.server()
        one = self.pair(server)
        one.scheduler.do("request", "short", 0)
        token = one.scheduler.do("prepare_put", "short", 0, 2)
        one.worker.do("put", 905, 0, 2, token)
        one.worker.wait(905)
        one.scheduler.do("complete_put", "short", 1)
        one.scheduler.do("finish", "short")
        self.assertEqual(one.hits(0, 2), "00")
        self.assertEqual(server.stat()["holes_total"], 0)
        server.quiet()

    def test_mask_keeps_the_good_part_of_a_batch(self):
        server = self.server()
        one = self.pair(server)
        one.put(0, 4, verdict="1010")
        self.assertEqual(one.hits(0, 4), "1010")
        server.quiet()

    def test_second_writer_shares_and_moves_nothing(self):  # SHARED
        server = self.server()
        one, two = self.pair(server), self.pair(server)
        request = one.request()
        token = one.scheduler.do("prepare_put", request, 0, 3)
        before = server.stat()
        self.assertEqual(two.put(0, 3)[:2], ("Ok", "111"))
        self.assertEqual(server.stat()["shared_keys_total"] - before["shared_keys_total"], 3)
        self.assertEqual(two.hits(0, 3), "000")
        one.worker.do("put", 901, 0, 3, token)
        self.assertEqual(one.worker.wait(901)[:2], ("Ok", "111"))
        one.scheduler.do("complete_put", request, 1)
        self.assertEqual(two.get(0, 3), ("Ok", "111", 3, 0))
        server.quiet()

    def test_failed_writer_leaves_nothing_and_the_next_one_writes(self):
        server = self.server()
        one, two = self.pair(server), self.pair(server)
        one.put(0, 3, verdict=0)
        self.assertEqual(two.hits(0, 3), "000")
        self.assertEqual(two.put(0, 3)[0], "Ok")
        self.assertEqual(one.get(0, 3), ("Ok", "111", 3, 0))

    def test_flipped_byte_fails_one_block_only(self):  # V-39, R-2.30, R-5.14
        server = self.server(debug_calls="true")
        one, two = self.pair(server), self.pair(server)
        one.put(0, 5)
        harness.flip(server, one, 2, 1000)
        self.assertEqual(two.get(0, 5), ("NotFound", "11011", 4, 0))
        harness.eventually(lambda: two.hits(0, 5) == "11011", "the damaged block is withdrawn")
        self.assertEqual(server.stat()["revoked_blocks_total"], 1)
        self.assertEqual(one.put(2, 1)[0], "Ok")
        self.assertEqual(two.get(0, 5), ("Ok", "11111", 5, 0))

    def test_flipped_byte_is_seen_by_the_engine_when_checksums_are_off(self):
        server = self.server(debug_calls="true")
        one = self.pair(server, checksum="false")
        one.put(0, 5)
        harness.flip(server, one, 2, 1000)
        self.assertEqual(one.get(0, 5), ("Ok", "11111", 4, 1))

    def test_bad_reader_cannot_empty_the_cache(self):
        server = self.server()
        one = self.pair(server)
        one.put(0, 1)
        harness.report(server, one, 0, 1)
        harness.report(server, one, 0, 2)
        self.assertEqual(one.hits(0, 1), "1")
        self.assertEqual(server.stat()["revoked_blocks_total"], 0)

    def test_token_of_a_concluded_put_writes_nothing(self):
        server = self.server(capacity_blocks=4)
        one, two = self.pair(server), self.pair(server)
        request = one.request()
        token = one.scheduler.do("prepare_put", request, 0, 4)
        one.scheduler.do("complete_put", request, 0)
        self.assertEqual(two.put(100, 4)[0], "Ok")
        one.worker.do("put", 902, 0, 4, token)
        status, bits, _, _ = one.worker.wait(902)
        self.assertNotEqual(status, "Ok")
        self.assertEqual(bits, "0000")
        self.assertEqual(two.get(100, 4), ("Ok", "1111", 4, 0))

    def test_token_of_a_concluded_get_reads_no_other_block(self):  # G14
        server = self.server(capacity_blocks=4)
        one, two = self.pair(server), self.pair(server)
        one.put(0, 4)
        request = one.request()
        token = one.scheduler.do("prepare_get", request, 0, 4)
        one.scheduler.do("complete_get", request)
        self.assertEqual(two.put(100, 4)[0], "Ok")
        one.worker.do("get", 903, 0, 4, token)
        status, bits, good, wrong = one.worker.wait(903)
        self.assertEqual((status, bits, good, wrong), ("NotFound", "0000", 0, 0))

    def test_token_with_any_flipped_bit_moves_nothing(self):
        server = self.server()
        one = self.pair(server)
        one.put(0, 3)
        request = one.request()
        token = one.scheduler.do("prepare_get", request, 0, 3)
        bits = len(token) * 4
        chosen = range(bits) if harness.PATIENCE == 1 else random.Random(7).sample(range(bits), 40)
        for bit in chosen:
            digit = format(int(token[bit // 4], 16) ^ (1 << (bit % 4)), "x")
            altered = token[:bit // 4] + digit + token[bit // 4 + 1:]
            try:
                one.worker.do("get", 1000 + bit, 0, 3, altered)
            except NodeError as error:
                self.assertEqual(error.status, "InvalidParam", f"bit {bit}")
                continue
            status, moved, _, wrong = one.worker.wait(1000 + bit)
            self.assertNotEqual(status, "Ok", f"bit {bit}")
            self.assertEqual((moved, wrong), ("000", 0), f"bit {bit}")
        one.worker.do("get", 999, 0, 3, token)
        self.assertEqual(one.worker.wait(999), ("Ok", "111", 3, 0))
        one.scheduler.do("complete_get", request)
        server.quiet()

    def test_pinned_blocks_stay(self):  # G3
        server = self.server(capacity_blocks=4)
        one, two = self.pair(server), self.pair(server)
        one.put(0, 2)
        request = one.request()
        token = one.scheduler.do("prepare_get", request, 0, 2)
        two.put(100, 2)
        with self.assertRaises(NodeError) as caught:
            two.put(200, 3)
        self.assertEqual(caught.exception.status, "NoSpace")
        two.put(200, 2)
        one.worker.do("get", 904, 0, 2, token)
        self.assertEqual(one.worker.wait(904), ("Ok", "11", 2, 0))
        one.scheduler.do("complete_get", request)
        server.quiet()

    def test_read_only_node_cannot_write(self):
        server = self.server()
        one = self.pair(server)
        one.put(0, 1)
        reader = self.pair(server, access="ro")
        self.assertEqual(reader.get(0, 1), ("Ok", "1", 1, 0))
        with self.assertRaises(NodeError) as caught:
            reader.put(1, 1)
        self.assertEqual(caught.exception.status, "PermissionDenied")

    def test_finishing_a_request_concludes_its_windows(self):  # V-47
        server = self.server()
        one = self.pair(server)
        one.put(0, 2)
        request = one.request()
        one.scheduler.do("prepare_get", request, 0, 2)
        one.scheduler.do("prepare_put", request, 10, 2)
        one.scheduler.do("finish", request)
        server.quiet()
        self.assertEqual(one.hits(10, 2), "00")


if __name__ == "__main__":
    harness.main()
