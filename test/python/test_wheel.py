# SPDX-License-Identifier: Apache-2.0
"""The wheel: built, installed into a clean environment, used there."""

import os
import pathlib
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# What a store in its own memory needs of the wheel, without any path of ours.
SCRIPT = """
import ucm_proxy
from ucm_proxy import engines
with ucm_proxy.Client({"type": "store", "store": "cache",
                       "config": {"block_bytes": 4096, "capacity_blocks": 16}}) as client:
    assert client.put("key", b"value") and client.get("key") == b"value"
try:
    ucm_proxy.Client("127.0.0.1:1")
except ucm_proxy.Error as error:
    print(ucm_proxy.__file__, error.name)
"""


def run(*command, **options):
    """Run a command; its output is shown when it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=900,
                          check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif("UCM_SANITIZED" in os.environ, reason="the wheel is of a build of its own")
def test_a_wheel_works_in_a_clean_environment(tmp_path):
    """Installed without network, run outside of the repository with an empty environment."""
    source = tmp_path / "source"
    run("git", "clone", "-q", ROOT, source)
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path,
        cwd=source / "client" / "python")
    (wheel,) = tmp_path.glob("ucm_proxy-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for needed in ("libucm_core.so.1", "libucm_proxy.so.1", "libucm_store_remote.so", "libucm_store_cache.so",
                   "libucm_store_posix.so"):
        assert f"ucm_proxy/lib/{needed}" in names
    assert not [name for name in names if "ibverbs" in name or "rdmacm" in name or "/libc.so" in name]
    run(sys.executable, "-m", "venv", tmp_path / "clean")
    run(tmp_path / "clean/bin/pip", "install", "-q", "--no-index", "--no-deps", wheel)
    shown = run(tmp_path / "clean/bin/python", "-X", "dev", "-c", SCRIPT, cwd=tmp_path, env={})
    assert str(tmp_path / "clean") in shown and "Unhealthy" in shown
