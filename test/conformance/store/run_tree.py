#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the store conformance suite on a tree with servers: run_tree.py SERVER SUITE TREE, port 0 throughout.

TREE is pipe (cache over remote), or a branch of the whole tree [remote | cache over remote | cache over posix] that is asked:
tree_remote, tree_cache_remote, tree_cache_posix. Afterwards the servers hold nothing.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

REMOTE = 'store: remote, config: {{fabric: tcp, servers: ["127.0.0.1:{port}"]}}'
POSIX = "store: posix, config: {{root: {folder}/blocks, block_bytes: 64KiB}}"
CACHE = "store: cache, config: {{capacity_blocks: 256, block_bytes: 64KiB, domain: {domain}}}"
# By branch: the lifetime that leads there, and its number.
BRANCHES = {"tree_remote": ("3600000", "0"), "tree_cache_remote": ("90000", "1"), "tree_cache_posix": (None, "2")}
PATIENCE_S = 60


def pipe(domain, below):
    return "{type: pipe, stores: [{" + CACHE.format(domain=domain) + "}, {" + below + "}]}"


def tree(name, ports, folder):
    """The configuration as YAML. Stores over one namespace each, so that no branch sees another's blocks."""
    domain = f"conformance-{os.getpid()}"
    over_remote = pipe(domain + "-r", REMOTE.format(port=ports[0]))
    if name == "pipe":
        return over_remote
    return ("{type: peer, branches: [{type: store, " + REMOTE.format(port=ports[1]) + "}, " + over_remote + ", "
            + pipe(domain + "-p", POSIX.format(folder=folder))
            + "], routing: {strategy: ttl, config: {thresholds: [120000, 60000]}}}")


def held(program, port):
    """What sessions hold in a server; it learns of their end a moment later."""
    result = subprocess.run([program, "--server", f"127.0.0.1:{port}", "stat", "--json"], check=True, capture_output=True)
    stat = json.loads(result.stdout)
    return {key: stat[key] for key in ("reserved_slots", "pinned_slots", "draining_slots") if stat[key] != 0}


def nothing_is_held(program, ports):
    limit = time.monotonic() + PATIENCE_S
    while any(held(program, port) for port in ports):
        if time.monotonic() > limit:
            print(f"run_tree.py: the servers still hold {[held(program, port) for port in ports]}", file=sys.stderr)
            return False
        time.sleep(0.05)
    return True


def main():
    server_path, suite_path, name = sys.argv[1:4]
    servers = [subprocess.Popen(
        [server_path, "--listen=127.0.0.1:0", "--fabric=tcp", "--fabric_port=0",
         "--ready_file=-", "--block_bytes=64KiB", "--capacity_blocks=256", "--log_level=warn"],
        stdout=subprocess.PIPE, text=True) for _ in range(2)]
    environment = dict(os.environ)
    ttl_ms, branch = BRANCHES.get(name, (None, "0"))
    environment["UCM_STORE_BRANCH"] = branch
    if ttl_ms is not None:
        environment["UCM_STORE_TTL_MS"] = ttl_ms
    try:
        ports = [json.loads(server.stdout.readline())["rpc_port"] for server in servers]
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "tree.yaml")
            with open(config, "w", encoding="utf-8") as file:
                file.write(tree(name, ports, folder))
            code = subprocess.run([suite_path, config], check=False, env=environment).returncode
            is_clean = nothing_is_held(str(pathlib.Path(server_path).parent / "ucm"), ports)
            return code if is_clean else 1
    finally:
        for server in servers:
            server.terminate()
            server.wait()
            server.stdout.close()


if __name__ == "__main__":
    sys.exit(main())
