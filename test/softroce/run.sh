#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the suite over verbs: on this machine's own RDMA device if it has an active one with an address,
# else on SoftRoCE in a virtual machine.
#
# usage: run.sh BUILD_DIR ['COMMAND'...]    (commands run in BUILD_DIR; none = those of suite.txt)
# exit:  0 all passed; 77 skipped, which is 1 if CI=true
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Prints the address of the first active RDMA port that has an IPv4 address; nothing if there is none.
native_address()
{
    local netdev

    [ -c /dev/infiniband/rdma_cm ] || return 0
    PATH=$PATH:/usr/sbin:/sbin rdma link show 2> /dev/null |
        sed -n 's/^link .* state ACTIVE .* netdev \([^ ]*\).*/\1/p' |
        while read -r netdev; do
            ip -o -4 addr show dev "$netdev" 2> /dev/null | sed -n 's/.* inet \([0-9.]*\).*/\1/p'
        done | grep -v '^127\.' | head -n 1 || true
}

[ $# -gt 0 ] || { echo "usage: run.sh BUILD_DIR ['COMMAND'...]" >&2; exit 2; }
build_dir=$(cd "$1" && pwd)
shift

if [ -z "${UCM_FABRIC_ADDRESS:-}" ] && [ "${UCM_SOFTROCE_NATIVE:-1}" = 1 ]; then
    UCM_FABRIC_ADDRESS=$(native_address)
fi
if [ -n "${UCM_FABRIC_ADDRESS:-}" ]; then
    echo "softroce: using the device of this machine, $UCM_FABRIC_ADDRESS"
    ulimit -l unlimited 2> /dev/null || true
    export UCM_FABRIC_ADDRESS CK_FORK=no
    exec bash "$here/suite.sh" "$build_dir" "$@"
fi

unset UCM_FABRIC_ADDRESS
# What lies under /tmp or /run is not seen inside unless it is carried over: the build, the tests, the traces.
if [ -n "${UCM_TRACE_DIR:-}" ] && [ -d "$UCM_TRACE_DIR" ]; then
    UCM_TRACE_DIR=$(cd "$UCM_TRACE_DIR" && pwd)
    export UCM_TRACE_DIR
fi
export UCM_SOFTROCE_KEEP="${UCM_SOFTROCE_KEEP:-}:$build_dir:${here%/*}:${UCM_TRACE_DIR:-}"
exec bash "$here/run_in_vm.sh" bash "$here/suite.sh" "$build_dir" "$@"
