# SPDX-License-Identifier: Apache-2.0
"""net/PROTOCOL.md is true: a client written from it alone talks to a real server."""

import pytest
import ucm_proxy as ucm
from protocol_client import ProtocolClient


def test_hello_lookup_and_stat(server):
    """What one client stores the other finds."""
    host, port = server.address.rsplit(":", 1)
    keys = [bytes([n]) * 16 for n in range(20)]
    with ucm.Client(server.address, fabric="tcp") as client:
        client.put_many((key, b"value") for key in keys[::2])
        other = ProtocolClient(host, int(port))
        assert other.hello["block_bytes"] == client.block_bytes and other.hello["lease_ms"] > 0
        assert other.lookup(keys) == [n % 2 == 0 for n in range(20)]
        assert other.lookup([]) == []
        assert other.stat()["blocks"] == 10
        with pytest.raises(RuntimeError, match="-50012"):
            other.call("alloc", keys[1], None, {})
        with pytest.raises(RuntimeError, match="-50008"):
            other.call("no such method")
        other.close()
