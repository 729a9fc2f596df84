# SPDX-License-Identifier: Apache-2.0
"""A server with two RDMA devices: each client moves its blocks over the device that it reaches.

Needs a second network interface with an address beside the device's, as the virtual machine has: `v1`, 10.98.0.2.
"""

import os
import subprocess
import unittest

import harness

SECOND_INTERFACE = "v1"
SECOND_ADDRESS = "10.98.0.2"
SECOND_DEVICE = "rxe1"


def rdma(*words):
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    subprocess.run(["rdma", "link", *words], check=True, env=dict(os.environ, PATH=path))


def setUpModule():
    if harness.FABRIC != "verbs" or not os.path.exists(f"/sys/class/net/{SECOND_INTERFACE}"):
        raise unittest.SkipTest("no second interface for a second device")
    rdma("add", SECOND_DEVICE, "type", "rxe", "netdev", SECOND_INTERFACE)
    unittest.addModuleCleanup(rdma, "delete", SECOND_DEVICE)


class TwoDevices(harness.Case):
    def exchange(self, server, **config):
        pair = self.pair(server, **config)
        self.assertEqual(pair.put(0, 10)[:2], ("Ok", "1" * 10))
        self.assertEqual(pair.get(0, 10), ("Ok", "1" * 10, 10, 0))
        server.quiet()

    def test_client_takes_the_first_address_that_it_reaches(self):
        server = self.server(fabric_address=f"{SECOND_ADDRESS},{harness.ADDRESS}")
        self.assertIn(f"serves on {SECOND_ADDRESS} ", server.output())
        self.assertIn(f"serves on {harness.ADDRESS} ", server.output())
        self.exchange(server)

    def test_client_of_the_second_device_is_served_there(self):
        server = self.server(fabric_address=f"{harness.ADDRESS},{SECOND_ADDRESS}",
                             fabric_device=f"rxe0,{SECOND_DEVICE}:1")
        self.exchange(server, device=SECOND_DEVICE)

    def test_client_of_a_device_that_the_server_lacks_moves_nothing(self):
        server = self.server()
        pair = self.pair(server, device=SECOND_DEVICE, connect_timeout="1s")
        self.assertEqual(pair.put(0, 1, verdict=0)[1], "0")
        server.quiet()


if __name__ == "__main__":
    harness.main()
