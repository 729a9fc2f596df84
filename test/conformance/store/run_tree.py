#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the store conformance suite on a tree with servers: run_tree.py SERVER SUITE TREE, port 0 throughout.

TREE is pipe (cache over remote), peer or peer_pipe (remote, and a pipe of cache over remote; which branch is asked).
"""

import json
import os
import subprocess
import sys
import tempfile

REMOTE = '{{store: remote, config: {{fabric: tcp, servers: ["127.0.0.1:{port}"]}}}}'
CACHE = "{{store: cache, config: {{capacity_blocks: 256, block_bytes: 64KiB, domain: {domain}}}}}"


def tree(name, ports, domain):
    """The configuration as YAML. Stores over one namespace each, so that no branch sees another's blocks."""
    pipe = "{type: pipe, stores: [" + CACHE.format(domain=domain) + ", " + REMOTE.format(port=ports[0]) + "]}"
    if name == "pipe":
        return pipe
    single = REMOTE.format(port=ports[1]).replace("{store", "{type: store, store", 1)
    return ("{type: peer, branches: [" + single + ", " + pipe
            + "], routing: {strategy: ttl, config: {thresholds: [60000]}}}")


def main():
    server_path, suite_path, name = sys.argv[1:4]
    servers = [subprocess.Popen(
        [server_path, "--listen=127.0.0.1:0", "--fabric=tcp", "--fabric_port=0",
         "--ready_file=-", "--block_bytes=64KiB", "--capacity_blocks=256", "--log_level=warn"],
        stdout=subprocess.PIPE, text=True) for _ in range(2)]
    environment = dict(os.environ)
    if name == "peer":
        environment.update(UCM_STORE_TTL_MS="3600000", UCM_STORE_BRANCH="0")
    try:
        ports = [json.loads(server.stdout.readline())["rpc_port"] for server in servers]
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "tree.yaml")
            with open(config, "w", encoding="utf-8") as file:
                file.write(tree(name, ports, f"conformance-{os.getpid()}"))
            return subprocess.run([suite_path, config], check=False, env=environment).returncode
    finally:
        for server in servers:
            server.terminate()
            server.wait()
            server.stdout.close()


if __name__ == "__main__":
    sys.exit(main())
