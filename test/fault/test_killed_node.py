# SPDX-License-Identifier: Apache-2.0
"""kill -9 of a node in the middle of its work: the server fences, frees what it held, the others go on."""

import json
import pathlib
import random
import subprocess
import time

import harness
from harness import BIN, FABRIC, PATIENCE, NodeError

MOMENTS = 20 if PATIENCE == 1 else 5


class KilledNode(harness.Case):
    def test_killed_in_a_put_at_random_moments(self):
        server = self.server(block_bytes=262144, capacity_blocks=64, lease="3s")
        other = self.pair(server, block_bytes=262144)
        source = random.Random(11)
        written = 0
        for moment in range(MOMENTS):
            victim = harness.Pair(self.folder, server.address, block_bytes=262144)
            request = victim.request()
            first = 1000 * (moment + 1)
            token = victim.scheduler.do("prepare_put", request, first, 48)
            victim.worker.send("put", 1, first, 48, token)
            time.sleep(source.random() * 0.05 * PATIENCE)
            # Either process first, or only the scheduler: the worker may live on and keep writing.
            order = [victim.scheduler, victim.worker]
            source.shuffle(order)
            order[0].kill()
            order[1].kill()
            server.quiet()
            self.assertEqual(other.hits(first, 48), "0" * 48, f"moment {moment}")
            self.assertEqual(other.put(first + 500, 32)[:2], ("Ok", "1" * 32))
            self.assertEqual(other.get(first + 500, 32), ("Ok", "1" * 32, 32, 0))
            written += 32
            victim.scheduler.process.stdin.close()
            victim.worker.process.stdin.close()
            victim.close()
        stat = server.stat()
        self.assertEqual(stat["committed_blocks_total"], written)
        self.assertEqual(stat["sessions"], 2)  # the other scheduler, and this call

    def test_killed_worker_leaves_the_reservation_to_its_scheduler(self):
        server = self.server(lease="3s")
        one = self.pair(server)
        request = one.request()
        token = one.scheduler.do("prepare_put", request, 0, 64)
        one.worker.send("put", 1, 0, 64, token)
        one.worker.kill()
        harness.eventually(lambda: server.stat()["open_brackets"] == 0, "brackets end with the worker")
        self.assertEqual(server.stat()["reserved_slots"], 64)
        try:
            one.scheduler.do("complete_put", request, 1)
        except NodeError as error:
            self.assertEqual(error.status, "InvalidParam")
            self.assertIn("0", one.hits(0, 64))
        server.quiet()
        one.worker.process.stdin.close()

    def test_replay_goes_on_when_a_node_is_killed(self):
        requests = 400 if PATIENCE == 1 else 100
        for seed in range(4 if PATIENCE == 1 else 1):
            server = harness.Server(self.folder, capacity_blocks=400, lease="3s")
            pids = pathlib.Path(self.folder) / f"pids-{seed}.json"
            replay = subprocess.Popen(
                [str(BIN / "ucm-bench"), "replay", "--generate", f"{seed + 1}:{requests}", "--nodes", "2",
                 "--capacity-blocks", "400", "--block-bytes", str(harness.BLOCK), "--fabric", FABRIC,
                 "--server", server.address, "--pids-file", str(pids), "--json"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            harness.eventually(pids.exists, "nodes run")
            node = json.loads(pids.read_text())["nodes"][0]
            time.sleep(random.Random(seed).random() * 0.4)
            for pid in random.Random(seed).sample([node["scheduler"], node["worker"]], 2):
                subprocess.run(["kill", "-9", str(pid)], check=False, stderr=subprocess.DEVNULL)
            output, errors = replay.communicate(timeout=300 * PATIENCE)
            report = json.loads(output)
            self.assertEqual(report["mismatches"], 0, errors[-2000:])
            self.assertEqual(report["requests"] + report["lost_requests"], requests)
            self.assertLessEqual(report["dead_nodes"], 1)
            server.quiet()
            server.stop()


if __name__ == "__main__":
    harness.main()
