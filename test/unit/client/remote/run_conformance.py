#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Start a server on a free port and run the store conformance suite on the remote store against it."""

import json
import os
import subprocess
import sys
import tempfile


def main():
    server_path, suite_path = sys.argv[1:3]
    server = subprocess.Popen(
        [server_path, "--listen=127.0.0.1:0", "--fabric=tcp", "--fabric_port=0",
         "--ready_file=-", "--block_bytes=64KiB", "--capacity_blocks=256", "--log_level=warn"],
        stdout=subprocess.PIPE, text=True)
    try:
        port = json.loads(server.stdout.readline())["rpc_port"]
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "remote.yaml")
            with open(config, "w", encoding="utf-8") as file:
                file.write("type: store\nstore: remote\nconfig:\n  fabric: tcp\n"
                           f"  servers: [\"127.0.0.1:{port}\"]\n")
            return subprocess.run([suite_path, config], check=False).returncode
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


if __name__ == "__main__":
    sys.exit(main())
