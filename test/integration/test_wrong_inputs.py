# SPDX-License-Identifier: Apache-2.0
"""Wrong inputs: each gets a clear message and a non-zero exit; nothing is lost and nothing crashes."""

import os
import pathlib
import random
import socket
import struct
import subprocess

import harness
import rpc
from harness import ADDRESS, BIN, BLOCK, FABRIC, run


class WrongInputs(harness.Case):
    def start(self, *arguments):
        """Run a server that must not come up."""
        result = run("ucm-server", *arguments, timeout=60)
        self.assertNotEqual(result.returncode, 0, result.stderr)
        self.assertGreater(result.returncode, 0, f"killed by a signal: {result.stderr}")
        return result.stderr

    def test_unknown_key_names_line_and_nearest_key(self):
        path = pathlib.Path(self.folder) / "server.yaml"
        path.write_text("listen: 127.0.0.1:0\nlaese: 10s\n")
        text = self.start("--config", path)
        self.assertIn("laese", text)
        self.assertIn("lease", text.replace("laese", ""))
        self.assertRegex(text, r"server\.yaml:2")

    def test_unknown_option_names_the_nearest(self):
        self.assertIn("capacity", self.start("--capasity=1GiB").replace("capasity", ""))

    def test_capacity_larger_than_memory(self):
        text = self.start("--listen=127.0.0.1:0", "--fabric-port=0", "--capacity=4TiB")
        self.assertIn("capacity", text)

    def test_port_in_use(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            text = self.start(f"--listen=127.0.0.1:{port}", "--fabric-port=0", "--capacity=16MiB")
        self.assertIn(str(port), text)
        self.assertIn("in use", text)

    def test_block_size_differing_from_the_namespace(self):
        server = self.server()
        replay = run("ucm-bench", "replay", "--generate", "1:10", "--nodes", "1", "--block-bytes",
                     2 * BLOCK, "--fabric", FABRIC, "--server", server.address)
        self.assertNotEqual(replay.returncode, 0)
        self.assertIn(str(BLOCK), replay.stderr)
        self.assertIn(str(2 * BLOCK), replay.stderr)

    def test_unknown_namespace(self):
        server = self.server()
        stat = run("ucm", "--server", server.address, "--namespace", "nosuch", "stat")
        self.assertEqual(stat.returncode, 3)
        self.assertIn("nosuch", stat.stderr)

    def test_truncated_trace_line(self):
        path = pathlib.Path(self.folder) / "trace.jsonl"
        line = '{"timestamp": 0, "input_length": 512, "output_length": 1, "hash_ids": [1]}\n'
        path.write_text(line + line[:40] + "\n" + line)
        for mode in (["--simulate"], ["--spawn-server", "--fabric", FABRIC, "--block-bytes", 4096]):
            replay = run("ucm-bench", "replay", "--trace", path, "--nodes", 2, "--capacity-blocks",
                         100, *mode)
            self.assertNotEqual(replay.returncode, 0)
            self.assertIn("trace.jsonl:2", replay.stderr)

    def test_ready_file_replaces_nothing_but_a_file(self):
        """As root a rename would replace a device."""
        pipe = pathlib.Path(self.folder) / "pipe"
        os.mkfifo(pipe)
        link = pathlib.Path(self.folder) / "link"
        link.symlink_to("/dev/null")
        for path in (pipe, link, self.folder):
            text = self.start("--listen=127.0.0.1:0", "--fabric-port=0", "--capacity=16MiB",
                              f"--ready-file={path}")
            self.assertIn("no regular file", text)
            self.assertIn(str(path), text)
        self.assertTrue(pipe.is_fifo())
        self.assertTrue(link.is_symlink())

    def test_texts_that_no_client_could_say(self):
        for key in ("namespace", "credential"):
            self.assertIn("control characters", self.start(f"--{key}=a\nb", "--listen=127.0.0.1:0"))

    def test_closed_standard_streams_are_not_given_to_others(self):
        """Else the log's lines go where descriptor 2 leads: into a socket, or over the blocks."""
        ready = pathlib.Path(self.folder) / "ready"
        server = subprocess.Popen(
            [str(BIN / "ucm-server"), "--listen=127.0.0.1:0", "--fabric-port=0", "--fabric=tcp",
             "--capacity=16MiB", f"--ready-file={ready}"], preexec_fn=lambda: os.closerange(0, 3))
        self.stack.callback(server.wait)
        self.stack.callback(server.terminate)
        harness.eventually(ready.exists, "server is ready")
        for descriptor in range(3):
            self.assertEqual(os.readlink(f"/proc/{server.pid}/fd/{descriptor}"), "/dev/null")

    def test_wrong_credential(self):
        server = self.server(credential="secret")
        for credential, code in (("", 1), ("wrong", 1), ("secret", 0)):
            stat = run("ucm", "--server", server.address, "--credential", credential, "stat")
            self.assertEqual(stat.returncode, code, stat.stderr)


class Limits(harness.Case):
    def test_small_calls_do_not_cost_much_memory(self):
        """A write_begin of a few bytes opens a bracket of 65,536 keys; so many of them are Retry."""
        server = self.server(block_bytes=8, capacity_blocks=65536, lease="60s")
        keys = b"".join(struct.pack("<QQ", number, 1) for number in range(65536))
        with rpc.Client(ADDRESS, server.port) as control, rpc.Client(ADDRESS, server.port) as data:
            data.attach(control.hello())
            grant, _ = control.call("alloc", [keys, None, None])
            for bracket in range(64):
                data.call("write_begin", [grant, bracket, 0, 65536])
            with self.assertRaises(rpc.RpcError) as caught:
                data.call("write_begin", [grant, 64, 0, 1])
            self.assertEqual(caught.exception.code, -50004)
            data.call("write_end", [0, False, b""])
            data.call("write_begin", [grant, 64, 0, 1])
        server.quiet()


def frames(seed, count):
    """Random frames: some pure noise, some with a valid length, some damaged real calls."""
    source = random.Random(seed)
    hello = b"\x94\x00\x01\xa5hello\x91\x80"
    for _ in range(count):
        kind = source.randrange(4)
        if kind == 0:
            yield source.randbytes(source.randrange(1, 64))
        elif kind == 1:
            body = source.randbytes(source.randrange(0, 200))
            yield struct.pack("<I", len(body)) + body
        elif kind == 2:
            body = bytearray(hello + source.randbytes(source.randrange(0, 8)))
            body[source.randrange(len(body))] ^= 1 << source.randrange(8)
            yield struct.pack("<I", len(body)) + bytes(body)
        else:
            yield struct.pack("<I", source.getrandbits(32)) + source.randbytes(16)


class RandomFrames(harness.Case):
    def throw(self, port, seed, count):
        """Send frames, reconnecting whenever the server hangs up."""
        connection = None
        for frame in frames(seed, count):
            for _ in range(2):
                if connection is None:
                    connection = socket.create_connection((ADDRESS, port), timeout=10)
                try:
                    connection.sendall(frame)
                    break
                except OSError:
                    connection.close()
                    connection = None
        if connection is not None:
            connection.close()

    def test_ten_thousand_random_frames_on_every_port(self):
        server = self.server()
        pair = self.pair(server)
        pair.put(0, 8)
        descriptors = len(os.listdir(f"/proc/{server.process.pid}/fd"))
        self.throw(server.port, 1, 10000)
        if FABRIC == "tcp":
            self.throw(server.ports["fabric_port"], 2, 10000)
        self.assertIsNone(server.process.poll(), server.output()[-2000:])
        self.assertEqual(pair.get(0, 8), ("Ok", "1" * 8, 8, 0))
        harness.eventually(
            lambda: len(os.listdir(f"/proc/{server.process.pid}/fd")) <= descriptors,
            "all descriptors of bad peers are closed")
        server.quiet()


if __name__ == "__main__":
    harness.main()
