#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the store conformance suite on the posix store in a new folder.

Usage: run_conformance.py SUITE FOLDER [roots=N] [key=value ...]; exits with 77 where io_uring or O_DIRECT is asked for
and this machine has none.
"""

import os
import subprocess
import sys
import tempfile

SKIP = 77
REFUSALS = ("io_uring is not permitted", "io_uring is too old", "built without liburing", "has no O_DIRECT")


def main():
    suite, where, *settings = sys.argv[1:]
    roots = 1
    # Not in a memory file system: O_DIRECT and io_uring are to be met as on a disk.
    with tempfile.TemporaryDirectory(dir=where, prefix="posix-") as folder:
        for setting in list(settings):
            if setting.startswith("roots="):
                settings.remove(setting)
                roots = int(setting.partition("=")[2])
        paths = ", ".join(f'"{folder}/root-{idx}"' for idx in range(roots))
        config = os.path.join(folder, "posix.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"type: store\nstore: posix\nconfig:\n  root: [{paths}]\n")
        result = subprocess.run([suite, config, *(f"config.{setting}" for setting in settings)],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        print(result.stdout)
        if result.returncode != 0 and any(text in result.stdout for text in REFUSALS):
            print("SKIP: this machine lacks what the case is about")
            return SKIP
        return result.returncode


if __name__ == "__main__":
    sys.exit(main())
