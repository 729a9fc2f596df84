# SPDX-License-Identifier: Apache-2.0
"""What the Python tests share: a server process, topologies, memory.

Environment: UCM_BIN (folder of the executables) and PYTHONPATH with the built package; UCM_PATIENCE
stretches limits on slow machines.
"""

import contextlib
import pathlib
import sys

import pytest
from hypothesis import settings

settings.register_profile("plain", database=None, deadline=None)
settings.load_profile("plain")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))

import harness  # noqa: E402  (the processes of the integration tests)

BLOCK = 4096


@pytest.fixture
def server(tmp_path):
    """A ucm-server that the test may stop or kill."""
    process = harness.Server(tmp_path, block_bytes=BLOCK, capacity_blocks=256)
    yield process
    process.stop()


@pytest.fixture
def servers(tmp_path):
    """Two servers."""
    with contextlib.ExitStack() as stack:
        made = []
        for _ in range(2):
            process = harness.Server(tmp_path, block_bytes=BLOCK, capacity_blocks=256)
            stack.callback(process.stop)
            made.append(process)
        yield made


def remote(*processes, **keys):
    """A topology: the remote store on servers."""
    config = {"servers": [process.address for process in processes], "fabric": harness.FABRIC, **keys}
    return {"type": "store", "store": "remote", "config": config}


def cache(**keys):
    """A topology without any server: the node's own memory."""
    return {"type": "store", "store": "cache",
            "config": {"block_bytes": BLOCK, "capacity_blocks": 64, **keys}}
