# SPDX-License-Identifier: Apache-2.0
"""Jobs in memory that nobody registers: through a few buffers over verbs, as it is over the others (R-5.26)."""

import json

import harness
from harness import BLOCK

COUNT = 20


def bounced(pair):
    """Blocks that went through buffers, as the worker tells."""
    return json.loads(pair.worker.do("describe"))["blocks_bounced"]


class Unregistered(harness.Case):
    def plain_pair(self, server, **config):
        pair = self.pair(server, **config)
        pair.worker.do("memory", "plain")
        return pair

    def test_more_blocks_than_buffers_both_ways(self):
        for progress in ("thread", "caller"):
            with self.subTest(progress=progress):
                server = self.server()
                one = self.plain_pair(server, bounce_bytes=2 * BLOCK, progress=progress)
                two = self.plain_pair(server, bounce_bytes=1, progress=progress)
                self.assertEqual(one.put(0, COUNT)[:2], ("Ok", "1" * COUNT))
                self.assertEqual(two.get(0, COUNT), ("Ok", "1" * COUNT, COUNT, 0))
                for pair in (one, two):
                    self.assertEqual(bounced(pair), COUNT if harness.FABRIC == "verbs" else 0)
                server.quiet()

    def test_registered_memory_beside_it_is_used_in_place(self):
        server = self.server()
        pair = self.pair(server)
        pair.put(0, COUNT)
        self.assertEqual(bounced(pair), 0)
        pair.worker.do("memory", "plain")
        self.assertEqual(pair.get(0, COUNT), ("Ok", "1" * COUNT, COUNT, 0))
        pair.worker.do("memory", "registered")
        self.assertEqual(pair.get(0, COUNT), ("Ok", "1" * COUNT, COUNT, 0))
        self.assertEqual(bounced(pair), COUNT if harness.FABRIC == "verbs" else 0)

    def test_flipped_byte_is_found_in_the_buffer(self):
        server = self.server(debug_calls="true")
        pair = self.plain_pair(server, bounce_bytes=2 * BLOCK)
        pair.put(0, COUNT)
        harness.flip(server, pair, 3, 1000)
        self.assertEqual(pair.get(0, COUNT), ("NotFound", "1110" + "1" * (COUNT - 4), COUNT - 1, 0))
        self.assertEqual(pair.hits(0, COUNT), "1110" + "1" * (COUNT - 4))

    def test_without_buffers_verbs_refuses_it(self):
        server = self.server()
        pair = self.plain_pair(server, bounce_bytes=0)
        if harness.FABRIC == "verbs":
            request = pair.request()
            token = pair.scheduler.do("prepare_put", request, 0, 2)
            pair.worker.do("put", 900, 0, 2, token)
            self.assertEqual(pair.worker.wait(900)[:2], ("InvalidParam", "00"))
        else:
            self.assertEqual(pair.put(0, 2)[:2], ("Ok", "11"))


if __name__ == "__main__":
    harness.main()
