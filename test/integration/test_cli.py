# SPDX-License-Identifier: Apache-2.0
"""The ucm command: put, get, exists, stat; its exit codes and its JSON."""

import hashlib
import json
import os
import pathlib
import subprocess

import harness
from harness import BIN, BLOCK, FABRIC, run


class Cli(harness.Case):
    def setUp(self):
        super().setUp()
        self.one = self.server(capacity_blocks=16)

    def ucm(self, *arguments, **options):
        return run("ucm", "--server", self.one.address, "--fabric", FABRIC, *arguments, **options)

    def file(self, name, content):
        path = pathlib.Path(self.folder) / name
        path.write_bytes(content)
        return path

    def test_put_then_get_gives_the_same_bytes(self):
        for length in (1, 100, BLOCK - 1, BLOCK):
            content = os.urandom(length)
            source = self.file("source", content)
            target = pathlib.Path(self.folder) / "target"
            put = self.ucm("--json", "put", f"key {length}", source)
            self.assertEqual(put.returncode, 0, put.stderr)
            self.assertEqual(json.loads(put.stdout)["bytes"], length)
            get = self.ucm("get", f"key {length}", target)
            self.assertEqual(get.returncode, 0, get.stderr)
            self.assertEqual(hashlib.sha256(target.read_bytes()).digest(),
                             hashlib.sha256(content).digest())

    def test_put_of_a_present_key_moves_nothing(self):
        source = self.file("source", b"first")
        self.assertEqual(self.ucm("put", "k", source).returncode, 0)
        again = self.ucm("--json", "put", "k", self.file("other", b"second"))
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertTrue(json.loads(again.stdout)["present"])
        target = pathlib.Path(self.folder) / "target"
        self.assertEqual(self.ucm("get", "k", target).returncode, 0)
        self.assertEqual(target.read_bytes(), b"first")

    def test_exists_tells_by_exit_code(self):
        self.assertEqual(self.ucm("exists", "nothing").returncode, 3)
        self.assertEqual(self.ucm("put", "something", self.file("s", b"x")).returncode, 0)
        found = self.ucm("--json", "exists", "something")
        self.assertEqual(found.returncode, 0)
        self.assertTrue(json.loads(found.stdout)["exists"])

    def test_get_of_an_absent_key_is_not_found(self):
        get = self.ucm("get", "nothing", "-")
        self.assertEqual(get.returncode, 3)
        self.assertIn("NotFound (-50005)", get.stderr)

    def test_file_longer_than_a_block_is_refused(self):
        put = self.ucm("put", "k", self.file("big", bytes(BLOCK + 1)))
        self.assertEqual(put.returncode, 1)
        self.assertIn(str(BLOCK), put.stderr)
        self.assertEqual(self.one.stat()["reserved_slots"], 0)

    def test_stat_counts(self):
        self.ucm("put", "k", self.file("s", b"x"))
        stat = self.one.stat()
        self.assertEqual(stat["capacity_blocks"], 16)
        self.assertEqual(stat["blocks"], 1)
        self.assertEqual(stat["committed_blocks_total"], 1)
        self.assertEqual(stat["block_bytes"], BLOCK)

    def test_wrong_usage_is_exit_2(self):
        for arguments in ((), ("nosuch",), ("put", "k"), ("--nosuch",), ("--timeout=1 parsec", "stat")):
            self.assertEqual(self.ucm(*arguments).returncode, 2, arguments)
        self.assertIn("did you mean 'stat'", self.ucm("stta").stderr)

    def test_output_that_does_not_arrive_is_a_failure(self):
        """A full disk, or a standard output that was closed: never exit code 0."""
        self.assertEqual(self.ucm("put", "k", self.file("s", b"x")).returncode, 0)
        for words in (["stat"], ["--json", "stat"], ["--help"], ["get", "k", "-"]):
            command = [str(BIN / "ucm"), "--server", self.one.address, "--fabric", FABRIC, *words]
            with open("/dev/full", "wb") as full:
                code = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
            self.assertEqual(code.returncode, 1, words)
            self.assertIn(b"standard output" if words[0] != "get" else b"cannot write", code.stderr)
            code = subprocess.run(command, stderr=subprocess.PIPE, check=False,
                                  preexec_fn=lambda: os.close(1))
            self.assertEqual(code.returncode, 1, words)

    def test_closed_standard_input_is_no_socket(self):
        code = subprocess.run(
            [str(BIN / "ucm"), "--server", self.one.address, "--fabric", FABRIC, "put", "k", "-"],
            stderr=subprocess.PIPE, check=False, preexec_fn=lambda: os.close(0))
        self.assertEqual(code.returncode, 1)
        self.assertIn(b"Bad file descriptor", code.stderr)

    def test_unreachable_server_is_named(self):
        port = harness.free_port()
        stat = run("ucm", "--server", f"{harness.ADDRESS}:{port}", "stat")
        self.assertEqual(stat.returncode, 1)
        self.assertIn(str(port), stat.stderr)


if __name__ == "__main__":
    harness.main()
