#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs inside the machine: network, SoftRoCE, limits; then the command. Everything shares one network
# namespace: rdma_rxe of this kernel routes in the initial one only.
set -eu
export PATH=$PATH:/usr/sbin:/sbin

ip link set lo up
ip link add v0 type veth peer name v1
for idx in 0 1; do
    # RoCE takes the largest IB MTU that fits: 9000 gives 4096, 1500 would give 1024. No IPv6: duplicate
    # address detection would change the GID table under the first connections.
    echo 1 > "/proc/sys/net/ipv6/conf/v$idx/disable_ipv6" 2> /dev/null || true
    ip addr add "10.98.0.$((idx + 1))/24" dev "v$idx"
    ip link set "v$idx" mtu 9000 up
done
rdma link add rxe0 type rxe netdev v0
ulimit -l unlimited
export UCM_FABRIC_ADDRESS=10.98.0.1
export CK_FORK=no # registered memory does not survive fork

exec "$@"
