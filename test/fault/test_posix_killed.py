# SPDX-License-Identifier: Apache-2.0
"""kill -9 of a process that writes through the posix store: no partial block is ever visible, what was acknowledged
stays, and leftovers go with the next owner while those of live processes stay."""

import os
import pathlib
import random
import select
import subprocess
import tempfile
import time
import unittest

from harness import BIN, PATIENCE, eventually

PROGRAM = str(BIN.parent / "test" / "ucm-test-posix")
MOMENTS = 25 if PATIENCE == 1 else 6
SPAN = 1000  # numbers of one writer


class Writer:
    def __init__(self, root, first, *settings):
        self.first = first
        self.stored = 0
        self.process = subprocess.Popen([PROGRAM, "write", root, str(first), *settings],
                                        stdout=subprocess.PIPE, text=True)

    def await_first(self):
        ready, _, _ = select.select([self.process.stdout], [], [], 30 * PATIENCE)
        if not ready:
            raise AssertionError("the writer stores nothing")

    def kill(self):
        self.process.kill()
        output, _ = self.process.communicate()
        # The last line may have been cut.
        self.stored = output.count("\n")


class KilledWriter(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=BIN.parent / "test", prefix="posix-killed-")
        self.addCleanup(folder.cleanup)
        self.root = os.path.join(folder.name, "root")

    def temporary(self):
        return [path for path in pathlib.Path(self.root, ".tmp").glob("*/*") if path.name != "lock"]

    def owners(self):
        return list(pathlib.Path(self.root, ".tmp").iterdir())

    def check(self, writer, *settings):
        result = subprocess.run([PROGRAM, "check", self.root, str(writer.first), str(writer.stored + 20), *settings],
                                capture_output=True, text=True, timeout=120 * PATIENCE, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout[:writer.stored], "1" * writer.stored)

    def kill_at_random_moments(self, *settings):
        source = random.Random(" ".join(settings))
        leftovers = 0
        for moment in range(10 * MOMENTS):
            # Moments that leave nothing behind prove little.
            if moment >= MOMENTS and leftovers > 0:
                break
            writer = Writer(self.root, SPAN * moment, *settings)
            if source.random() < 0.8:
                writer.await_first()
            time.sleep(source.random() * 0.03 * PATIENCE)
            writer.kill()
            leftovers += len(self.temporary())
            self.check(writer, *settings)
            self.assertEqual(self.temporary(), [])
            self.assertEqual(self.owners(), [])
        self.assertGreater(leftovers, 0)

    def test_threads(self):
        self.kill_at_random_moments("io=threads")

    def test_auto_direct_and_synced(self):
        self.kill_at_random_moments("io=auto", "direct_io=on", "fsync=full")

    def test_files_of_a_live_writer_stay(self):
        witness = Writer(self.root, 0, "io=threads")
        witness.await_first()
        for moment in range(1, MOMENTS):
            writer = Writer(self.root, SPAN * moment)
            writer.await_first()
            writer.kill()
            self.check(writer)
            self.assertIsNone(witness.process.poll(), "the live writer lost a file")
        eventually(lambda: len(self.owners()) == 1, "only the live writer is left")
        witness.kill()
        self.assertGreater(witness.stored, MOMENTS)
        self.check(witness)
        self.assertEqual(self.owners(), [])


if __name__ == "__main__":
    unittest.main()
