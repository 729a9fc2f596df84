#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Start servers on free ports and run the store conformance suite on the remote store against them."""

import json
import os
import subprocess
import sys
import tempfile


def main():
    server_path, suite_path, store, count, fabric, progress = sys.argv[1:7]
    keys = "".join(f"  {key}: {value}\n" for key, value in (word.split("=") for word in sys.argv[7:]))
    servers = [subprocess.Popen(
        [server_path, "--listen=127.0.0.1:0", f"--fabric={fabric}", "--fabric_port=0",
         "--ready_file=-", "--block_bytes=64KiB", "--capacity_blocks=256", "--log_level=warn"],
        stdout=subprocess.PIPE, text=True) for _ in range(int(count))]
    try:
        ports = [json.loads(server.stdout.readline())["rpc_port"] for server in servers]
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "remote.yaml")
            with open(config, "w", encoding="utf-8") as file:
                file.write(f"type: store\nstore: {store}\nconfig:\n  fabric: {fabric}\n  progress: {progress}\n"
                           "  servers: "
                           + json.dumps([f"127.0.0.1:{port}" for port in ports]) + "\n" + keys)
            return subprocess.run([suite_path, config], check=False).returncode
    finally:
        for server in servers:
            server.terminate()
            server.wait()
            server.stdout.close()


if __name__ == "__main__":
    sys.exit(main())
