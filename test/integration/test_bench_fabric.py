# SPDX-License-Identifier: Apache-2.0
"""ucm-bench fabric: two processes, every figure there, wrong bytes seen, peers that misbehave refused."""

import contextlib
import json
import re
import socket
import subprocess

import harness
from harness import ADDRESS, BIN, FABRIC, PATIENCE, run

SMALL = ("--block-bytes", "64KiB", "--working-set", "4MiB", "--rounds", "2", "--seconds", "1", "--depth", "4")
FRAME_BYTES = 328


class BenchFabric(harness.Case):
    def measure(self, *arguments):
        result = run("ucm-bench", "fabric", "--fabric", FABRIC, "--address", ADDRESS, *SMALL, "--json",
                     *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def check_figures(self, report):
        self.assertEqual(report["mismatches"], 0)
        self.assertGreater(report["bytes"], 0)
        for value in (report["gbytes_per_s"], report["ops_per_s"], report["p50_us"], report["p99_us"],
                      report["verified"]["gbytes_per_s"], report["cpu_s_per_gbyte"]["client"],
                      report["one_at_a_time"]["p50_us"]):
            self.assertGreater(value, 0)
        self.assertLessEqual(report["p50_us"], report["p99_us"])
        self.assertLessEqual(report["p99_us"], report["p99_9_us"])
        limit = report["limit"]
        if limit["gbytes_per_s"] is None:
            self.assertTrue(limit["reason"])
            self.assertIsNone(report["ratio"])
            self.assertIsNone(report["verified"]["ratio"])
        else:
            self.assertTrue(limit["name"])
            self.assertGreater(report["ratio"], 0)
            self.assertGreater(report["verified"]["ratio"], 0)

    def test_reads_and_writes_are_measured_beside_the_limit(self):
        for op, pieces in (("read", "1"), ("read", "32"), ("write", "32")):
            report = self.measure("--op", op, "--pieces", pieces)
            self.check_figures(report)
            self.assertEqual(report["op"], op)
            self.assertEqual(report["fabric"], FABRIC)
            self.assertEqual(report["working_set_bytes"], 4 << 20)

    def test_shared_memory_is_measured_beside_memcpy(self):
        for op in ("read", "write"):
            report = self.measure("--op", op, "--fabric", "shm", "--address", "127.0.0.1")
            self.check_figures(report)
            self.assertEqual(report["limit"]["name"], "memcpy")
            self.assertEqual(report["verified"]["fused"], op == "read")

    def test_reused_buffers_and_several_connections(self):
        report = self.measure("--buffers", "reused", "--connections", "2", "--op", "write")
        self.check_figures(report)
        self.assertEqual(report["buffers"], "reused")

    def test_without_a_limit_the_reason_is_given(self):
        report = self.measure("--limit", "off")
        self.check_figures(report)
        self.assertEqual(report["limit"], {"name": None, "gbytes_per_s": None, "reason": "--limit is off"})

    def test_text_names_what_was_measured(self):
        result = run("ucm-bench", "fabric", "--fabric", FABRIC, "--address", ADDRESS, *SMALL)
        self.assertEqual(result.returncode, 0, result.stderr)
        for words in ("fabric only", "verified", "latency", "processor time", "cold buffers"):
            self.assertIn(words, result.stdout)

    def start_server(self, *arguments):
        """A server of its own process; (process, address)."""
        process = subprocess.Popen([str(BIN / "ucm-bench"), "fabric", "--server", f"{ADDRESS}:0", *arguments],
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        line = process.stderr.readline()
        port = re.search(r":(\d+)$", line.strip())
        self.assertTrue(port, line)
        return process, int(port.group(1))

    def test_server_and_client_started_apart(self):
        process, port = self.start_server()
        report = self.measure("--connect", f"{ADDRESS}:{port}", "--op", "write")
        self.check_figures(report)
        self.assertEqual(process.wait(timeout=30 * PATIENCE), 0)

    def test_server_gives_no_more_memory_than_it_was_told(self):
        process, port = self.start_server("--working-set", "1MiB")
        result = run("ucm-bench", "fabric", "--fabric", FABRIC, *SMALL, "--connect", f"{ADDRESS}:{port}")
        self.assertEqual(result.returncode, 1)
        self.assertIn("--working-set", result.stderr)
        self.assertEqual(process.wait(timeout=30 * PATIENCE), 0)

    def test_server_refuses_a_stranger_and_ends(self):
        for content in (b"GET / HTTP/1.1\r\n" * 40, b"\xff" * FRAME_BYTES, b"UCB1"):
            process, port = self.start_server()
            with socket.create_connection((ADDRESS, port)) as stranger:
                with contextlib.suppress(OSError):  # the server may have hung up by then
                    stranger.sendall(content)
                    stranger.shutdown(socket.SHUT_WR)
                process.wait(timeout=30 * PATIENCE)
            self.assertIn(process.returncode, (0, 1))

    def test_unknown_peer_is_an_error_with_its_name(self):
        with socket.socket() as unused:
            unused.bind((ADDRESS, 0))
            port = unused.getsockname()[1]
            result = run("ucm-bench", "fabric", *SMALL, "--connect", f"{ADDRESS}:{port}")
        self.assertEqual(result.returncode, 1)
        self.assertIn(str(port), result.stderr)


if __name__ == "__main__":
    harness.main()
