# SPDX-License-Identifier: Apache-2.0
"""Replays over topologies from a file, in two processes per node: every byte is checked, hits are told by tier."""

import json
import os
import pathlib
import unittest

import harness
from harness import ADDRESS, FABRIC, run, trace

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "config"
SERVER = ("--spawn-server", "--address", ADDRESS, "--fabric", FABRIC)
REQUESTS = 150 if harness.PATIENCE == 1 else 80
COUNT = 0


def remote():
    return ["type: store", "store: remote", "config:", "  servers: $SERVERS", "  fabric: $FABRIC"]


def posix(folder):
    return ["type: store", "store: posix", "config:", f"  root: {folder}/blocks",
            "  block_bytes: $BLOCK_BYTES"]


def cache(capacity=4096):
    global COUNT  # a segment of its own for each test
    COUNT += 1
    return ["type: store", "store: cache", "config:", "  block_bytes: $BLOCK_BYTES",
            f"  capacity_blocks: {capacity}", "  write: through",
            f"  domain: test-{os.getpid()}-{COUNT}-$NODE"]


def children(key, parts):
    lines = [f"{key}:"]
    for part in parts:
        lines += [("  - " if idx == 0 else "    ") + line for idx, line in enumerate(part)]
    return lines


def pipe(*tiers):
    return ["type: pipe"] + children("stores", tiers)


def peer(thresholds, *branches):
    return ["type: peer", "routing:", "  strategy: ttl", "  config:",
            f"    thresholds: {thresholds}"] + children("branches", branches)


class Case(harness.Case):
    def write(self, lines):
        path = pathlib.Path(self.folder) / "topology.yaml"
        path.write_text("\n".join(lines) + "\n")
        return path

    def replay(self, lines, *arguments, requests=REQUESTS, source=None, timeout=600):
        source = source or ("--generate", f"7:{requests}")
        result = run("ucm-bench", "replay", *source, "--nodes", 2, "--block-bytes", 4096, "--config",
                     self.write(lines), "--json", *arguments, timeout=timeout)
        self.assertEqual(result.returncode, 0, result.stderr[-4000:])
        report = json.loads(result.stdout)
        self.clean(report)
        return report

    def clean(self, report):
        self.assertEqual([report[key] for key in ("mismatches", "errors", "failed_reads", "dead_nodes",
                                                  "failed_prefetches")], [0] * 5)
        self.assertGreater(report["prefix_hits"], 0)
        self.assertEqual(report["verified_bytes"], report["prefix_hits"] * 4096)
        # Each tier tells what it answered, and all of it together are the hits.
        hits = [tier["hits"] for tier in report["hits_by_tier"]]
        self.assertNotIn(None, hits)
        self.assertEqual(sum(hits), report["prefix_hits"])
        if "server" in report:
            self.assertEqual([report["server"][key] for key in
                              ("reserved_slots", "pinned_slots", "draining_slots")], [0] * 3)

    def warm(self, report):
        """The second round finds every block, and writes none."""
        second = report["rounds"][1]
        self.assertEqual(second["prefix_hits"], second["block_refs"])
        self.assertEqual(second["written_blocks"], 0)
        self.clean(second)
        return {tier["path"]: tier for tier in second["hits_by_tier"]}


class Topologies(Case):
    def test_remote(self):
        report = self.replay(remote(), *SERVER, "--repeat", 2)
        tiers = self.warm(report)
        self.assertEqual(tiers["root"]["store"], "remote")

    def test_remote_over_several_servers(self):
        self.warm(self.replay(remote(), *SERVER, "--servers", 3, "--repeat", 2))

    def test_posix_needs_no_server_and_is_there_for_the_next_run(self):
        lines = posix(self.folder)
        first = self.replay(lines)
        self.assertNotIn("server", first)
        self.assertLess(first["prefix_hits"], first["block_refs"])
        again = self.replay(lines)
        self.assertEqual(again["prefix_hits"], again["block_refs"])
        self.assertEqual(again["hits_by_tier"][0]["hits"], again["block_refs"])

    def test_peer_routes_by_the_lifetime_of_the_request(self):
        lines = peer([3600000], remote(), posix(self.folder))
        tiers = self.warm(self.replay(lines, *SERVER, "--ttl-seed", 3, "--repeat", 2))
        self.assertGreater(tiers["branches[0]"]["hits"], 0)
        self.assertGreater(tiers["branches[1]"]["hits"], 0)
        # Without lifetimes all goes to the last branch.
        tiers = self.warm(self.replay(lines, *SERVER, "--repeat", 2))
        self.assertEqual(tiers["branches[0]"]["hits"], 0)

    def test_warm_cache_takes_nothing_from_the_tier_below(self):
        for below, arguments in ((remote(), SERVER), (posix(self.folder), ())):
            report = self.replay(pipe(cache(), below), *arguments, "--repeat", 3)
            # Each node lifts what the other one wrote, once at most; from then on its own memory answers.
            self.assertGreater(report["prefetches"], 0)
            third = {tier["path"]: tier for tier in report["rounds"][2]["hits_by_tier"]}
            self.clean(report["rounds"][2])
            self.assertEqual(third["stores[0]"]["hits"], report["rounds"][2]["prefix_hits"])
            self.assertEqual(third["stores[1]"]["hits"], 0)
            self.assertEqual(report["rounds"][2]["written_blocks"], 0)

    def test_cold_cache_lifts_what_a_former_run_left_below(self):
        below = posix(self.folder)
        self.replay(below)
        report = self.replay(pipe(cache(), below))
        self.assertEqual(report["prefix_hits"], report["block_refs"])
        self.assertGreater(report["hits_by_tier"][1]["hits"], 0)
        self.assertGreater(report["hits_by_tier"][0]["hits"], 0)

    def test_full_tree(self):
        lines = peer([14400000, 1800000], remote(), pipe(cache(), remote()),
                     pipe(cache(), posix(self.folder)))
        report = self.replay(lines, *SERVER, "--ttl-seed", 3, "--repeat", 2)
        self.assertEqual([tier["store"] for tier in report["hits_by_tier"]],
                         ["remote", "cache", "remote", "cache", "posix"])
        # Both caches count for themselves: warm, they answer all that was routed to their branches.
        tiers = self.warm(report)
        for branch in (1, 2):
            self.assertGreater(tiers[f"branches[{branch}].stores[0]"]["hits"], 0)
            self.assertGreater(tiers[f"branches[{branch}].stores[0]"]["blocks_loaded"], 0)

    def test_first_requests_of_the_public_trace_over_peer_and_tiers(self):
        lines = peer([14400000, 1800000], remote(), pipe(cache(20000), remote()),
                     pipe(cache(20000), posix(self.folder)))
        limit = 3000 if harness.PATIENCE == 1 else harness.small(300, 100)
        source = ("--trace", trace("conversation_trace.jsonl"), "--limit", limit)
        report = self.replay(lines, *SERVER, "--capacity-blocks", 100000, "--ttl-seed", 3, source=source)
        self.assertEqual(report["requests"], limit)

    def test_examples_are_taken(self):
        for path in sorted(EXAMPLES.glob("topology-*.yaml")):
            text = path.read_text().replace("/var/tmp/ucm-blocks", f"{self.folder}/{path.stem}")
            text = text.replace("ucm-node-", f"test-{os.getpid()}-{path.stem}-")
            self.replay(text.splitlines(), *SERVER, requests=30)


class Store(Case):
    def store(self, lines, *arguments):
        return run("ucm-bench", "store", "--config", self.write(lines), "--blocks", 300, "--block-bytes",
                   "64KiB", "--json", *arguments)

    def test_store_measures_put_and_get_and_what_bounds_them(self):
        limits = []
        for lines, arguments in ((remote(), SERVER), (posix(self.folder), ()),
                                 (pipe(cache(), posix(self.folder)), ()), (cache()[:-2], ("--warm-up", 1)),
                                 (posix(self.folder) + ["  direct_io: on"], ("--direct-by", "uring"))):
            result = self.store(lines, *arguments)
            self.assertEqual(result.returncode, 0, result.stderr[-4000:])
            report = json.loads(result.stdout)
            self.assertEqual(report["verified_bytes"], 300 * 65536)
            self.assertEqual([report[key] for key in ("mismatches", "errors", "missing_blocks",
                                                      "failed_blocks", "refused_blocks")], [0] * 5)
            for phase, ops in (("put", 300), ("get", 300), ("memcpy_cold", 600), ("memcpy_reused", 600)):
                self.assertEqual(report[phase]["ops"], ops)
                self.assertGreater(report[phase]["gbytes_per_s"], 0)
            self.assertGreaterEqual(report["get"]["p99_us"], report["get"]["p50_us"])
            for phase in ("put", "get"):
                limit = report[phase]["limit"]
                if limit is None:
                    self.assertIsNone(report[phase]["ratio"])
                    self.assertGreater(len(report[phase]["reason"]), 10)
                else:
                    self.assertEqual(report[phase]["limits"][0], limit)
                    ratio = report[phase]["gbytes_per_s"] / limit["gbytes_per_s"]
                    self.assertAlmostEqual(report[phase]["ratio"], ratio, delta=ratio / 1000)
                limits.append(limit and limit["name"])
        self.assertEqual(limits[:-2], [None, None, None, None, None, "memcpy_cold", "memcpy_cold", "memcpy_cold"])
        # Where O_DIRECT or io_uring is not to be had, the medium has no limit.
        self.assertIn(limits[-2:], (["io_uring_new_files", "io_uring_read"], [None, None]))
        self.assertEqual(list(pathlib.Path(self.folder).glob("**/.ucm-bench-*")), [])

    def test_store_puts_blocks_of_its_own_in_every_run(self):
        lines = posix(self.folder)
        for run_count in (1, 2):
            result = self.store(lines)
            self.assertEqual(result.returncode, 0, result.stderr[-4000:])
            files = [path for path in pathlib.Path(self.folder).glob("blocks/**/*")
                     if path.is_file() and path.stat().st_size > 65536]
            self.assertEqual(len(files), run_count * 300)

    def test_store_takes_medians_over_rounds(self):
        lines = posix(self.folder) + ["  direct_io: on"]
        for huge_pages in ("on", "off"):
            result = self.store(lines, "--direct-by", "uring", "--rounds", 3, "--huge-pages", huge_pages)
            if result.returncode != 0 and "O_DIRECT" in result.stderr:
                self.skipTest("no O_DIRECT here")
            self.assertEqual(result.returncode, 0, result.stderr[-4000:])
            report = json.loads(result.stdout)
            self.assertEqual(report["sweeps"], 3)
            self.assertEqual(report["huge_pages"], huge_pages == "on")
            self.assertEqual(report["put"]["ops"], 900)
            self.assertEqual(sorted(report["put"]["rounds"])[1], report["put"]["gbytes_per_s"])
            if report["put"]["limit"] is not None:
                names = [limit["name"] for limit in report["put"]["limits"]]
                self.assertEqual(names, ["io_uring_new_files", "io_uring_one_file", "io_uring_overwrite"])
                self.assertEqual(report["direct_new_files"]["ops"], 900)

    def stuck(self, polls):
        lines = ["type: store", f"store: {os.environ['UCM_TEST_STUCK']}", "config:", f"  empty_polls: {polls}"]
        result = self.store(lines, "--stall-ms", 50)
        self.assertEqual(result.returncode, 1, result.stderr[-4000:])
        self.assertEqual(result.stdout, "")
        self.assertIn("none of 8 jobs in flight has ended for 50 ms", result.stderr)
        self.assertIn("--stall-ms", result.stderr)
        return result.stderr

    def test_store_gives_up_on_jobs_that_never_end(self):
        self.assertIn("never ended", self.stuck(0))

    def test_store_takes_down_in_order_once_jobs_have_ended_late(self):
        """R-5.33: destroyed only after the events of all jobs were taken."""
        self.assertNotIn("never ended", self.stuck(4))

    def test_store_lifts_what_the_cache_does_not_hold(self):
        result = self.store(pipe(cache(280), posix(self.folder)))
        self.assertEqual(result.returncode, 0, result.stderr[-4000:])
        self.assertEqual(json.loads(result.stdout)["mismatches"], 0)


class WrongFiles(harness.Case):
    def refused(self, text, *named, command="replay", arguments=()):
        path = pathlib.Path(self.folder) / "wrong.yaml"
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(text)
        words = ["--generate", "1:5"] if command == "replay" else []
        result = run("ucm-bench", command, *words, "--config", path, *arguments)
        self.assertEqual(result.returncode, 1, result.stderr)
        for name in named:
            self.assertIn(name, result.stderr)

    def test_errors_name_file_and_line_or_path(self):
        for command in ("replay", "store"):
            self.refused(None, "wrong.yaml", "No such file", command=command)
            self.refused("type: [", "wrong.yaml:", command=command)
            self.refused("stores: []\n", "wrong.yaml:1", '"type"', command=command)
            self.refused("# a comment\ntype: 3\n", "wrong.yaml:2", '"type"', command=command)
            self.refused("type: store\nstore: remote\nconfig:\n  servers: $SERVERS\n", "wrong.yaml:4",
                         "servers", "--spawn-server", command=command)
            self.refused("type: store\nstore: posix\nconfig:\n  root: /x/$HOME\n", "wrong.yaml:4",
                         "unknown placeholder", "$NODE", command=command)
            self.refused("type: store\nstore: posix\nconfig:\n  root: /x/$BLOCK_BYTES\n",
                         "wrong.yaml:4", "whole", command=command)
            self.refused("type: stack\n", "wrong.yaml:1: ", "stack", command=command)
            self.refused("type: store\nstore: posix\nconfg: {}\n", "wrong.yaml:3: ", "confg",
                         command=command)
            self.refused("type: peer\nbranches:\n  - type: store\n    store: posix\n"
                         "  - type: store\n    store: nosuch\n"
                         "routing: {strategy: ttl, config: {thresholds: [1]}}\n", "wrong.yaml:3: ",
                         "branches[", command=command)

    def test_wrong_usage(self):
        for words in (["replay", "--generate", "1", "--simulate", "--config", "x"],
                      ["replay", "--generate", "1", "--simulate", "--repeat", "2"],
                      ["store"], ["store", "--config", "x", "--depth", "0"],
                      ["store", "--config", "x", "--stall-ms", "0"], ["store", "--config", "x", "--direct-by", "dd"],
                      ["store", "--config", "x", "--server", "h:1", "--spawn-server"],
                      ["store", "--config", "x", "--blocks", "1048576", "--block-bytes", "1GiB"],
                      ["store", "--config", "x", "--direct-dir", "y", "--block-bytes", "1000"]):
            result = run("ucm-bench", *words)
            self.assertEqual(result.returncode, 2, f"{words}: {result.stderr}")


if __name__ == "__main__":
    harness.main()
