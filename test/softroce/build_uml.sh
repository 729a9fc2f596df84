#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds a user-mode Linux kernel with SoftRoCE from Debian's kernel source, for run_in_uml.sh: programs run
# there at the speed of this machine. About 10 minutes on two cores, 2 GB of disk meanwhile (in TMPDIR), no
# privileges but for the packages of packages_uml.txt where some are missing.
#
# usage: build_uml.sh [KERNEL]    (default: where run_in_uml.sh looks for it)
# environment: UCM_UML_SOURCE (an archive of kernel 6.1; then nothing is installed), UCM_UML_JOBS, CC
set -euo pipefail

cache=${UCM_SOFTROCE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ucm-softroce}
kernel=${1:-$cache/uml/linux}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
archive=${UCM_UML_SOURCE:-/usr/src/linux-source-6.1.tar.xz}
jobs=${UCM_UML_JOBS:-$(nproc)}
compiler=${CC:-gcc}

# The virtio options bring PCI, without which the kernel offers no InfiniBand.
options="PCI UML_PCI_OVER_VIRTIO VIRTIO_UML NET INET IPV6 UNIX PACKET NETDEVICES VETH DUMMY INFINIBAND
    INFINIBAND_USER_ACCESS INFINIBAND_ADDR_TRANS RDMA_RXE CRYPTO_CRC32 HOSTFS TMPFS DEVTMPFS EPOLL EVENTFD
    MEMFD_CREATE"

fail()
{
    echo "build_uml.sh: $1" >&2
    exit 1
}

# The kernel copies the processor's register state with ptrace, into a buffer that is too small where that
# state holds the tiles of AMX (8 KiB): "ptrace set fp regs failed".
allow_for_tiles()
{
    local file=$1/arch/x86/um/user-offsets.c

    sed -i 's/DEFINE_LONGS(HOST_FP_SIZE, 2696);/DEFINE_LONGS(HOST_FP_SIZE, 12288);/' "$file"
    grep -q 'HOST_FP_SIZE, 12288' "$file" || fail "$file has another form of HOST_FP_SIZE"
}

configure()
{
    local tree=$1 name

    make -C "$tree" ARCH=um CC="$compiler" defconfig > /dev/null
    for name in $options; do
        "$tree/scripts/config" --file "$tree/.config" --enable "$name"
    done
    "$tree/scripts/config" --file "$tree/.config" --set-val KERNEL_STACK_ORDER 4
    make -C "$tree" ARCH=um CC="$compiler" olddefconfig > /dev/null
    for name in $options; do
        grep -q "^CONFIG_$name=y" "$tree/.config" || fail "the kernel's configuration refuses $name"
    done
}

[ -n "${UCM_UML_SOURCE:-}" ] || "$here/../../deploy/install-deps.sh" "$here/packages_uml.txt"
[ -f "$archive" ] || fail "$archive is missing; install linux-source-6.1 or set UCM_UML_SOURCE"
work=$(mktemp -d "${TMPDIR:-/tmp}/ucm-uml-XXXXXX")
trap 'rm -rf "$work"' EXIT
tar -xf "$archive" -C "$work" --strip-components=1
allow_for_tiles "$work"
configure "$work"
make -C "$work" ARCH=um CC="$compiler" -j"$jobs" linux > "$work/build.log" 2>&1 ||
    { tail -n 30 "$work/build.log" >&2; fail "the build failed"; }
mkdir -p "$(dirname "$kernel")"
strip -o "$kernel.new" "$work/linux"
mv "$kernel.new" "$kernel"
echo "build_uml.sh: $kernel"
