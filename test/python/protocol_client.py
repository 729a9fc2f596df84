# SPDX-License-Identifier: Apache-2.0
"""A client of ucm-server in a few lines, written from net/PROTOCOL.md and from nothing else."""

import itertools
import socket
import struct

import msgpack


class ProtocolClient:
    """A control connection, after hello."""

    def __init__(self, host, port, namespace="default", access="ro"):
        self._socket = socket.create_connection((host, port), timeout=30)
        self._ids = itertools.count()
        self.hello = self.call("hello", {"version": 1, "namespace": namespace, "access": access,
                                         "client": "fifty lines"})

    def close(self):
        """Ends the session."""
        self._socket.close()

    def call(self, method, *params):
        """A request and its response; raises what the server answered as an error."""
        number = next(self._ids)
        frame = msgpack.packb([0, number, method, list(params)], use_bin_type=True)
        self._socket.sendall(struct.pack("<I", len(frame)) + frame)
        while True:
            (length,) = struct.unpack("<I", self._read(4))
            kind, answered, error, result = msgpack.unpackb(self._read(length), raw=False)
            if kind == 1 and answered == number:
                if error is not None:
                    raise RuntimeError(f"{method}: {error[0]}: {error[1]}")
                return result

    def lookup(self, keys):
        """A bool per key of 16 bytes."""
        bits = self.call("lookup", b"".join(keys))
        return [bits[idx // 8] >> idx % 8 & 1 == 1 for idx in range(len(keys))]

    def stat(self):
        """Counters by name."""
        return self.call("stat")

    def _read(self, length):
        data = b""
        while len(data) < length:
            piece = self._socket.recv(length - len(data))
            if not piece:
                raise ConnectionError("the server closed the connection")
            data += piece
        return data
