# SPDX-License-Identifier: Apache-2.0
"""Three servers share the blocks: two nodes replay over them, and one of them is killed or stopped under load."""

import json
import signal
import subprocess
import threading
import time

import harness
from harness import BIN, FABRIC, PATIENCE, NodeError, run

COUNT = 60  # blocks of the pair: some twenty on each server


class SeveralServers(harness.Case):
    def start(self, **keys):
        """Three servers on ports that they can come back to."""
        self.ports = [harness.free_port() for _ in range(3)]
        self.keys = keys
        self.servers = [self.server(port=port, **keys) for port in self.ports]
        self.addresses = [server.address for server in self.servers]

    def restart(self, index):
        self.servers[index] = self.server(port=self.ports[index], **self.keys)

    def quiet(self):
        for server in self.servers:
            server.quiet()

    def pair_on_all(self):
        pair = harness.Pair(self.folder, self.addresses, rpc_timeout=f"{int(500 * PATIENCE)}ms")
        self.stack.callback(pair.close)
        return pair

    def replay(self, *arguments):
        result = run("ucm-bench", "replay", "--spawn-server", "--servers", 3, "--nodes", 2, "--address",
                     harness.ADDRESS, "--fabric", FABRIC, "--json", *arguments, timeout=600)
        self.assertEqual(result.returncode, 0, result.stderr[-4000:])
        report = json.loads(result.stdout)
        self.assertEqual([report[key] for key in ("mismatches", "errors", "failed_reads")], [0] * 3)
        self.assertEqual([report["server"][key] for key in
                          ("reserved_slots", "pinned_slots", "draining_slots")], [0] * 3)
        self.assertEqual(report["server"]["committed_blocks_total"], report["written_blocks"])
        self.assertEqual(report["server"]["pinned_keys_total"], report["prefix_hits"])
        self.assertGreater(report["cross_node_hits"], 0)
        return report

    def test_two_nodes_replay_a_generated_trace(self):
        # Roomy servers: nothing is evicted, so that the hits are those of one large cache.
        arguments = ["--generate", "7:150", "--block-bytes", 65536]
        report = self.replay(*arguments, "--capacity-blocks", 2000)
        want = run("ucm-bench", "replay", "--simulate", "--json", "--nodes", 2, *arguments,
                   "--capacity-blocks", 6000)
        for name in ("prefix_hits", "cross_node_hits", "written_blocks", "present_blocks"):
            self.assertEqual(report[name], json.loads(want.stdout)[name], name)
        self.replay(*arguments, "--capacity-blocks", 120)  # and one that evicts

    def test_two_nodes_replay_the_conversation_trace(self):
        limit = 3000 if PATIENCE == 1 and FABRIC == "tcp" else harness.small(300, 150)
        self.replay("--trace", harness.trace("conversation_trace.jsonl"), "--limit", limit,
                    "--block-bytes", 4096, "--capacity-blocks", 4000)

    def works(self, pair, first):
        """A put and a get over all servers; False while one of them is not back."""
        bits = "1" * COUNT
        try:
            return (pair.put(first, COUNT), pair.get(first, COUNT)) == \
                (("Ok", bits, 0, 0), ("Ok", bits, COUNT, 0))
        except NodeError as error:
            self.assertIn(error.status, ("Unhealthy", "NotFound"))
            return False

    def check_outage(self, take_away, bring_back):
        pair = self.pair_on_all()
        bits = "1" * COUNT
        self.assertEqual(pair.put(0, COUNT)[:2], ("Ok", bits))
        self.assertEqual(pair.hits(0, COUNT), bits)
        take_away()
        began = time.monotonic()
        left = pair.hits(0, COUNT)
        self.assertLess(time.monotonic() - began, 1.0 * PATIENCE)  # within a second: misses
        self.assertIn("0", left)  # what lay there is missing …
        self.assertIn("1", left)  # … and nothing else
        self.assertEqual(pair.hits(0, COUNT), left)
        for index in range(COUNT):  # the store works with the servers that are left
            if left[index] == "1":
                self.assertEqual(pair.get(index, 1), ("Ok", "1", 1, 0))
        with self.assertRaises(NodeError) as caught:  # commits all, though some could not be stored
            pair.put(1000, COUNT)
        self.assertEqual(caught.exception.status, "NotFound")
        stored = pair.hits(1000, COUNT)
        self.assertIn("0", stored)
        self.assertIn("1", stored)
        with self.assertRaises(NodeError) as caught:
            pair.get(0, COUNT)
        self.assertEqual(caught.exception.status, "NotFound")

        bring_back()
        attempt = iter(range(2000, 10 ** 9, COUNT))
        harness.eventually(lambda: self.works(pair, next(attempt)), "all servers are used again", 30)
        self.assertEqual(pair.put(0, COUNT)[0], "Ok")
        self.assertEqual(pair.get(0, COUNT), ("Ok", bits, COUNT, 0))
        self.quiet()

    def test_killed_server_is_misses_and_comes_back(self):  # G19
        self.start()
        self.check_outage(self.servers[1].kill, lambda: self.restart(1))

    def test_stopped_server_is_misses_and_comes_back(self):  # G19
        self.start(lease="3s")
        process = self.servers[1].process
        self.check_outage(lambda: process.send_signal(signal.SIGSTOP),
                          lambda: process.send_signal(signal.SIGCONT))

    def test_killed_under_load_no_request_outlives_its_deadline(self):  # G15, G19
        self.start(block_bytes=65536, capacity_blocks=1500)
        requests = 5000 if PATIENCE == 1 else harness.small(1000, 250)
        deadline_ms = int(2000 * PATIENCE)
        replay = subprocess.Popen(
            [str(BIN / "ucm-bench"), "replay", "--generate", f"5:{requests}", "--nodes", "2",
             "--block-bytes", "65536", "--fabric", FABRIC, "--server", ",".join(self.addresses),
             "--timeout-ms", str(deadline_ms), "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        answer = []
        reader = threading.Thread(target=lambda: answer.extend(replay.communicate()))
        reader.start()
        harness.eventually(lambda: self.servers[2].stat()["committed_blocks_total"] > 100, "the load runs")
        self.servers[2].kill()
        probe = self.servers[0].stat()["lookup_keys_total"]
        harness.eventually(lambda: self.servers[0].stat()["lookup_keys_total"] > probe,
                           "the others are asked meanwhile")
        self.restart(2)
        reader.join(300 * PATIENCE)
        self.assertIsNotNone(replay.returncode, "the replay hangs")
        report = json.loads(answer[0])
        self.assertEqual((report["mismatches"], report["dead_nodes"]), (0, 0), answer[1][-2000:])
        self.assertEqual(report["requests"], requests)
        # A call ends within rpc_timeout (1 s), a transfer with its deadline and the call that is under way then.
        for step in ("lookup", "pin", "alloc", "commit"):
            self.assertLess(report["latency_us"][step]["max"], 1.5e6 * PATIENCE, step)
        for step in ("read", "write"):
            self.assertLess(report["latency_us"][step]["max"], deadline_ms * 1e3 + 1.5e6 * PATIENCE, step)
        # The restarted server took part again, without any client restarted.
        self.assertGreater(self.servers[2].stat()["committed_blocks_total"], 0)
        self.assertGreater(self.servers[2].stat()["pinned_keys_total"], 0)
        self.quiet()


if __name__ == "__main__":
    harness.main()
