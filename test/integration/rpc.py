# SPDX-License-Identifier: Apache-2.0
"""A client of the control protocol, written from net/PROTOCOL.md, for calls that no store makes."""

import socket
import struct

import msgpack


class RpcError(Exception):
    """The server answered [code, message]."""

    def __init__(self, error):
        super().__init__(error)
        self.code = error[0]


class Client:
    def __init__(self, address, port):
        self.socket = socket.create_connection((address, port), timeout=30)
        self.message_id = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def receive(self, length):
        data = b""
        while len(data) < length:
            more = self.socket.recv(length - len(data))
            if not more:
                raise ConnectionError("server closed the connection")
            data += more
        return data

    def call(self, method, params):
        self.message_id += 1
        body = msgpack.packb([0, self.message_id, method, params], use_bin_type=True)
        self.socket.sendall(struct.pack("<I", len(body)) + body)
        length = struct.unpack("<I", self.receive(4))[0]
        kind, message_id, error, result = msgpack.unpackb(self.receive(length), raw=False)
        assert (kind, message_id) == (1, self.message_id)
        if error is not None:
            raise RpcError(error)
        return result

    def hello(self, access="rw"):
        return self.call("hello", [{"version": 1, "namespace": "default", "access": access,
                                    "credential": "", "client": "test"}])

    def attach(self, hello):
        """Become a worker of the session that got this answer to hello."""
        return self.call("attach", [{"version": 1, "attach_key": hello["attach_key"],
                                     "incarnation": hello["incarnation"]}])
