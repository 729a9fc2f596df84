# SPDX-License-Identifier: Apache-2.0
"""The main job: two nodes, four processes, share the prefixes of a request trace; every byte is checked."""

import glob
import json
import pathlib

import harness
from harness import ADDRESS, FABRIC, run, trace

# Figures of the public traces, computed once by an independent simulation.
FIGURES = [
    # trace, capacity, limit, references, hits, cross-node hits, written, present, evicted
    ("conversation_trace.jsonl", 10000, None, 288500, 60822, 29993, 227556, 122, 217556),
    ("synthetic_trace.jsonl", 10000, None, 121877, 51622, None, None, None, None),
    ("synthetic_trace.jsonl", 60000, None, 121877, 77953, None, None, None, 0),
    ("conversation_trace.jsonl", 10000, 500, 14162, 2253, 1134, None, None, None),
]
NAMES = ("block_refs", "prefix_hits", "cross_node_hits", "written_blocks", "present_blocks",
         "evicted_blocks")


def packets_sent():
    """Packets that RDMA devices of this machine have sent; None where they do not count them."""
    counters = glob.glob("/sys/class/infiniband/*/ports/*/hw_counters/sent_pkts")
    return sum(int(pathlib.Path(path).read_text()) for path in counters) if counters else None


class Replay(harness.Case):
    def replay(self, *arguments, nodes=2, block_bytes=4096, capacity=10000, timeout=900):
        result = run("ucm-bench", "replay", "--nodes", nodes, "--block-bytes", block_bytes,
                     "--capacity-blocks", capacity, "--json", *arguments, timeout=timeout)
        self.assertEqual(result.returncode, 0, result.stderr[-4000:])
        return json.loads(result.stdout)

    def over_processes(self, *arguments, **options):
        before = packets_sent()
        report = self.replay("--spawn-server", "--address", ADDRESS, "--fabric", FABRIC, *arguments,
                             **options)
        if FABRIC == "verbs" and before is not None:
            # The device carried every block: at least a packet each.
            self.assertGreater(packets_sent() - before,
                               report["prefix_hits"] + report["written_blocks"])
        self.assertEqual((report["mismatches"], report["errors"], report["failed_reads"]), (0, 0, 0))
        self.assertEqual(report["verified_bytes"],
                         report["prefix_hits"] * options.get("block_bytes", 4096))
        # The server counted the same.
        counters = report["server"]
        self.assertEqual(counters["pinned_keys_total"], report["prefix_hits"])
        self.assertEqual(counters["committed_blocks_total"], report["written_blocks"])
        self.assertEqual(counters["present_keys_total"], report["present_blocks"])
        self.assertEqual(counters["evicted_blocks_total"], report["evicted_blocks"])
        self.assertEqual(
            [counters[key] for key in ("reserved_slots", "pinned_slots", "draining_slots")], [0] * 3)
        return report

    def check_figures(self, report, figures):
        for name, want in zip(NAMES, figures):
            if want is not None:
                self.assertEqual(report[name], want, name)

    def test_simulation_of_the_public_traces(self):
        for name, capacity, limit, *figures in FIGURES:
            arguments = ["--trace", trace(name), "--simulate"]
            arguments += ["--limit", limit] if limit else []
            self.check_figures(self.replay(*arguments, capacity=capacity), figures)

    def test_public_traces_over_processes(self):
        rows = FIGURES if FABRIC == "tcp" and harness.PATIENCE == 1 else FIGURES[3:]
        for name, capacity, limit, *figures in rows:
            arguments = ["--trace", trace(name)] + (["--limit", limit] if limit else [])
            self.check_figures(self.over_processes(*arguments, capacity=capacity), figures)

    def test_generated_trace_equals_its_simulation(self):
        runs = ((300, 2), (50, 3), (5, 2))
        for capacity, nodes in runs if harness.PATIENCE == 1 else runs[1:2]:
            generated = ["--generate", "7:150"]
            want = self.replay(*generated, "--simulate", capacity=capacity, nodes=nodes)
            got = self.over_processes(*generated, capacity=capacity, nodes=nodes, block_bytes=65536)
            for name in NAMES + ("requests", "refused_puts"):
                self.assertEqual(got[name], want[name], f"{name} at {capacity}")
            self.assertGreater(got["prefix_hits"], 0)

    def test_every_policy_over_processes(self):
        for policy in ("clock", "fifo", "pwa") if harness.PATIENCE == 1 else ("clock",):
            arguments = ["--generate", "7:150" if harness.PATIENCE == 1 else "7:40", "--policy", policy]
            capacity = 300 if harness.PATIENCE == 1 else 60
            want = self.replay(*arguments, "--simulate", capacity=capacity)
            got = self.over_processes(*arguments, capacity=capacity)
            self.assertGreater(got["prefix_hits"], 0)
            self.assertGreater(got["evicted_blocks"], 0)
            if policy != "pwa":  # which knows the trace's times and partial blocks in a simulation only
                for name in NAMES:
                    self.assertEqual(got[name], want[name], f"{name} with {policy}")

    def flipped(self, checksum, requests):
        """Replay a trace, flip a byte of one of its blocks in the server's memory, replay it again."""
        server = self.server(block_bytes=4096, capacity_blocks=100, debug_calls="true")
        path = pathlib.Path(self.folder) / "trace.jsonl"
        line = json.dumps({"timestamp": 0, "input_length": 4096, "output_length": 1,
                           "hash_ids": list(range(8))})
        path.write_text("\n".join([line] * requests) + "\n")
        arguments = ["--trace", path, "--server", server.address, "--fabric", FABRIC, "--checksum",
                     checksum]
        self.replay(*arguments)
        harness.flip(server, self.pair(server), 3, 1234)
        again = run("ucm-bench", "replay", "--nodes", 2, "--block-bytes", 4096, "--json", *arguments)
        return again.returncode, json.loads(again.stdout)

    def test_flipped_byte_fails_exactly_one_block_and_the_replay_goes_on(self):
        code, report = self.flipped("on", 6)
        self.assertEqual(code, 0)
        self.assertEqual((report["failed_reads"], report["mismatches"], report["errors"]), (1, 0, 0))
        self.assertEqual(report["requests"], 6)
        self.assertEqual(report["server"]["revoked_blocks_total"], 1)
        self.assertEqual(report["written_blocks"], 1)  # computed again, then found by the others

    def test_flipped_byte_is_counted_as_a_mismatch_without_checksums(self):
        code, report = self.flipped("off", 1)
        self.assertEqual(code, 1)  # wrong bytes are a failure of the run
        self.assertEqual((report["failed_reads"], report["mismatches"], report["errors"]), (0, 1, 0))

    def test_report_has_latencies_of_every_step(self):
        report = self.over_processes("--generate", "7:60", capacity=200)
        for step in ("lookup", "pin", "read", "alloc", "write", "commit"):
            latency = report["latency_us"][step]
            self.assertGreater(latency["p50"], 0)
            self.assertGreaterEqual(latency["p99"], latency["p50"])


if __name__ == "__main__":
    harness.main()
