# SPDX-License-Identifier: Apache-2.0
"""Real processes for the integration and fault tests: a server, nodes, the command line tools.

Environment: UCM_BIN (folder of the executables), UCM_TEST_NODE (the test node), UCM_FABRIC (tcp by default),
UCM_ADDRESS (127.0.0.1 by default; the RDMA address in the SoftRoCE machine), UCM_TRACE_DIR.
"""

import contextlib
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import rpc

BIN = pathlib.Path(os.environ.get("UCM_BIN", "build/release/bin"))
NODE = os.environ.get("UCM_TEST_NODE", "build/release/test/ucm-test-node")
FABRIC = os.environ.get("UCM_FABRIC", "tcp")
ADDRESS = os.environ.get("UCM_ADDRESS", "127.0.0.1")
TRACES = pathlib.Path(os.environ.get("UCM_TRACE_DIR", "../shared/traces"))
# Emulated machines and sanitizers are slow: every limit below is multiplied by this.
PATIENCE = float(os.environ.get("UCM_PATIENCE", "1"))
BLOCK = 65536


def small(size, emulated):
    """A size for slow machines; the one with emulated RDMA is the slowest of them."""
    return size if FABRIC == "tcp" else emulated


def eventually(condition, what, seconds=20.0):
    """Wait until condition() holds; the only place that polls."""
    limit = time.monotonic() + seconds * PATIENCE
    while not condition():
        if time.monotonic() > limit:
            raise AssertionError(f"not within {seconds * PATIENCE:.0f} s: {what}")
        time.sleep(0.02)


def stand_still(pid):
    """SIGSTOP, and wait until each thread has taken it: a thread on another processor goes on for a while."""
    def stopped():
        states = [path.read_text().rpartition(")")[2].split()[0]
                  for path in pathlib.Path(f"/proc/{pid}/task").glob("*/stat")]
        return bool(states) and set(states) <= {"T", "t", "Z"}
    os.kill(pid, signal.SIGSTOP)
    eventually(stopped, f"process {pid} stands still")


def trace(name):
    """Path of a public trace; the test is skipped, visibly, where it is absent."""
    path = TRACES / name
    if not path.exists():
        message = f"no {name} in {TRACES} (set UCM_TRACE_DIR)"
        print(f"SKIP: {message}", file=sys.stderr)
        raise unittest.SkipTest(message)
    return str(path)


def run(*command, timeout=300, **options):
    """Run one of our executables; text output captured."""
    path = str(BIN / command[0])
    return subprocess.run([path, *map(str, command[1:])], capture_output=True, text=True,
                          timeout=timeout * PATIENCE, check=False, **options)


class Server:
    """A ucm-server on free ports."""

    def __init__(self, folder, *, block_bytes=BLOCK, capacity_blocks=1000, port=0, **keys):
        self.log = open(pathlib.Path(folder) / f"server-{time.monotonic_ns()}.log", "w+b")
        ready = pathlib.Path(folder) / f"ready-{time.monotonic_ns()}.json"
        arguments = [str(BIN / "ucm-server"), f"--listen={ADDRESS}:{port}", "--fabric-port=0",
                     f"--fabric={FABRIC}", f"--block-bytes={block_bytes}",
                     f"--capacity-blocks={capacity_blocks}", f"--ready-file={ready}"]
        arguments += [f"--{key.replace('_', '-')}={value}" for key, value in keys.items()]
        # A leak search at exit can hang when the signal that ends the server arrives within it. Leaks of the
        # server are searched for where it runs inside a test (test_server_*).
        environment = dict(os.environ, ASAN_OPTIONS="detect_leaks=0")
        self.process = subprocess.Popen(arguments, stdout=self.log, stderr=self.log, env=environment)
        eventually(lambda: ready.exists() or self.process.poll() is not None, "server is ready", 60)
        if not ready.exists():
            raise AssertionError("server ended: " + self.output())
        self.ports = json.loads(ready.read_text())
        self.port = self.ports["rpc_port"]
        self.address = f"{ADDRESS}:{self.port}"

    def output(self):
        self.log.flush()
        return pathlib.Path(self.log.name).read_text(errors="replace")

    def stat(self):
        result = run("ucm", "--server", self.address, "stat", "--json")
        if result.returncode != 0:
            raise AssertionError(f"ucm stat: {result.stderr}")
        return json.loads(result.stdout)

    def quiet(self, seconds=20.0):
        """Wait until nothing is reserved, pinned or draining."""
        def settled():
            try:
                stat = self.stat()
            except AssertionError:  # it still gives back much, and sanitizers are slow
                return False
            return all(stat[key] == 0 for key in ("reserved_slots", "pinned_slots", "draining_slots"))
        eventually(settled, "0 reserved, 0 pinned, 0 draining", seconds)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """SIGTERM; the exit code must be 0. A second call does nothing."""
        if self.log.closed:
            return 0
        if self.process.poll() is None:
            self.process.terminate()
            self.process.send_signal(signal.SIGCONT)  # of a test that failed while it stood still
        code = self.process.wait(timeout=30 * PATIENCE)
        text = self.output()
        self.log.close()
        if code not in (0, -signal.SIGKILL):
            raise AssertionError(f"server exit {code}: {text[-4000:]}")
        return code


class NodeError(Exception):
    """A node answered an error: `status` is the name of the code."""

    def __init__(self, line):
        super().__init__(line)
        self.status = line.split(" ")[1]


class Node:
    """One process of an inference node (node.c), on one server or a list of them, or with the lines of a topology."""

    def __init__(self, folder, role, server, *, block_bytes=BLOCK, topology=None, **config):
        servers = [server] if isinstance(server, str) else list(server)
        lines = topology or ["type: store", "store: remote", "config:", f"  servers: {servers}",
                             f"  fabric: {FABRIC}"]
        lines = lines + [f"  {key}: {value}" for key, value in config.items()]
        path = pathlib.Path(folder) / f"topology-{time.monotonic_ns()}.yaml"
        path.write_text("\n".join(lines) + "\n")
        self.block_bytes = block_bytes
        self.process = subprocess.Popen([NODE, role, str(path), str(block_bytes)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.answer()

    def send(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def answer(self, seconds=60.0):
        ready, _, _ = select.select([self.process.stdout], [], [], seconds * PATIENCE)
        if not ready:
            raise AssertionError("node does not answer")
        line = self.process.stdout.readline().rstrip("\n")
        if line.startswith("error"):
            raise NodeError(line)
        if not line.startswith("ok"):
            raise AssertionError(f"node said: {line!r}")
        return line[3:]

    def do(self, *words, seconds=60.0):
        self.send(*words)
        return self.answer(seconds)

    def wait(self, job, timeout_ms=60000):
        """(status, bits, good, wrong) of a job."""
        status, bits, good, wrong = self.do("wait", job, int(timeout_ms * PATIENCE)).split(" ")
        return status, bits, int(good.split("=")[1]), int(wrong.split("=")[1])

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        with contextlib.suppress(BrokenPipeError):  # of a process that was killed
            self.process.stdin.close()
        self.process.wait(timeout=60 * PATIENCE)
        self.process.stdout.close()


class Pair:
    """A scheduler and a worker process on one server."""

    _jobs = 0

    def __init__(self, folder, server, **config):
        self.scheduler = Node(folder, "scheduler", server, **config)
        self.worker = Node(folder, "worker", server, **config)
        self._requests = 0

    def request(self):
        self._requests += 1
        name = f"r{self._requests}"
        self.scheduler.do("request", name)
        return name

    @staticmethod
    def job():
        Pair._jobs += 1
        return Pair._jobs

    def put(self, first, count, verdict=1):
        """A whole put window; the result of the job. What fails leaves nothing reserved."""
        request = self.request()
        try:
            token = self.scheduler.do("prepare_put", request, first, count)
            job = self.job()
            self.worker.do("put", job, first, count, token)
            result = self.worker.wait(job)
            self.scheduler.do("complete_put", request, verdict)
        finally:
            self.finish(request)
        return result

    def get(self, first, count):
        """A whole get window; the result of the job."""
        request = self.request()
        try:
            token = self.scheduler.do("prepare_get", request, first, count)
            job = self.job()
            self.worker.do("get", job, first, count, token)
            result = self.worker.wait(job)
            self.scheduler.do("complete_get", request)
        finally:
            self.finish(request)
        return result

    def finish(self, request):
        """Forget the request; the store may have an error to tell of what it concluded (R-9.2)."""
        with contextlib.suppress(NodeError):
            self.scheduler.do("finish", request)

    def hits(self, first, count):
        request = self.request()
        bits = self.scheduler.do("lookup", request, first, count)
        self.scheduler.do("finish", request)
        return bits

    def close(self):
        self.worker.close()
        self.scheduler.close()


class Case(unittest.TestCase):
    """A test with a temporary folder, and processes that end with it."""

    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.folder = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="ucm-test-"))

    def server(self, **keys):
        server = Server(self.folder, **keys)
        self.stack.callback(server.stop)
        return server

    def pair(self, server, **config):
        pair = Pair(self.folder, server.address, **config)
        self.stack.callback(pair.close)
        return pair


def flip(server, pair, hash_id, offset):
    """Flip a byte of a block in the server's memory (the server runs with debug_calls)."""
    with rpc.Client(ADDRESS, server.port) as client:
        client.hello()
        client.call("debug_flip", [bytes.fromhex(pair.scheduler.do("key", hash_id)), offset])


def report(server, pair, hash_id, generation):
    """Claim that a block is damaged."""
    with rpc.Client(ADDRESS, server.port) as client:
        client.hello()
        key = bytes.fromhex(pair.scheduler.do("key", hash_id))
        client.call("report", [key, generation, "checksum"])


def free_port():
    """A port that was free a moment ago, for a server that must come back at the same address."""
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return probe.getsockname()[1]


def main():
    unittest.main(verbosity=2)
