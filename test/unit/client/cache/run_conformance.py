#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Start a server on free ports and run the store conformance suite on a cache above a remote store against it."""

import json
import os
import subprocess
import sys
import tempfile


def main():
    server_path, suite_path = sys.argv[1:3]
    server = subprocess.Popen(
        [server_path, "--listen=127.0.0.1:0", "--fabric=tcp", "--fabric_port=0", "--ready_file=-",
         "--block_bytes=64KiB", "--capacity_blocks=256", "--log_level=warn"], stdout=subprocess.PIPE, text=True)
    try:
        port = json.loads(server.stdout.readline())["rpc_port"]
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "tiers.yaml")
            with open(config, "w", encoding="utf-8") as file:
                file.write("type: pipe\nstores:\n- store: cache\n  config:\n    block_bytes: 64KiB\n"
                           f"    capacity_blocks: 128\n    domain: conformance-{os.getpid()}\n    write: through\n"
                           f"- store: remote\n  config:\n    fabric: tcp\n    servers: [\"127.0.0.1:{port}\"]\n")
            return subprocess.run([suite_path, config], check=False).returncode
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


if __name__ == "__main__":
    sys.exit(main())
