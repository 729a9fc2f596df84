#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Boots a small virtual machine with SoftRoCE on Debian's stock kernel and runs a command in it. The root
# file system inside is this machine's, read-only, so what was built here runs there as it is.
#
# usage: run_in_vm.sh COMMAND [ARGUMENT...]    (README.md lists the environment variables)
# exit:  the command's own status; 77 when this machine cannot boot one (1 if CI=true); 124 over LIMIT_S
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${UCM_SOFTROCE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ucm-softroce}
limit_s=${LIMIT_S:-300}
memory_mb=${UCM_SOFTROCE_MEMORY_MB:-2048}
marker=UCM-SOFTROCE-EXIT

# Modules in the order of loading; their dependencies come from depmod. rdma_rxe asks the crypto API for
# crc32 by name, which depmod cannot know: without it `rdma link add` fails with "No such file".
modules="virtio_pci virtio_net virtio_rng 9pnet_virtio 9p crc32_generic crc32_pclmul rdma_rxe ib_uverbs
    rdma_ucm dummy veth"

skip()
{
    echo "softroce: cannot boot the machine: $1" >&2
    if [ "${CI:-}" = true ]; then
        echo "softroce: CI=true, so this is a failure" >&2
        exit 1
    fi
    exit 77
}

require_tools()
{
    local tool

    for tool in qemu-system-x86_64 busybox cpio depmod rdma ip; do
        PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null ||
            skip "$tool is missing; install the packages of test/softroce/packages.txt"
    done
    file_is_static "$(command -v busybox)" || skip "busybox is not static; install busybox-static"
}

file_is_static()
{
    ! ldd "$1" >/dev/null 2>&1
}

# Prints the directory of an unpacked kernel package; downloads it on first use.
find_kernel()
{
    local package

    if [ -n "${UCM_SOFTROCE_KERNEL:-}" ]; then
        echo "$UCM_SOFTROCE_KERNEL"
        return
    fi
    if [ -d "$cache/kernel" ]; then
        echo "$cache/kernel"
        return
    fi
    command -v apt-cache >/dev/null || skip "no apt; point UCM_SOFTROCE_KERNEL at an unpacked kernel package"
    package=$(apt-cache depends linux-image-amd64 2>/dev/null |
        grep -oE 'linux-image-[0-9][^ ]*-amd64' | head -n 1) || true
    [ -n "$package" ] || skip "apt knows no linux-image-amd64; run apt-get update"
    rm -rf "$cache/unpack"
    mkdir -p "$cache/unpack/tree"
    (cd "$cache/unpack" && apt-get -q download "$package" >&2) || skip "cannot download $package"
    dpkg -x "$cache"/unpack/"$package"_*.deb "$cache/unpack/tree"
    depmod=$(PATH=$PATH:/usr/sbin:/sbin command -v depmod)
    "$depmod" -b "$cache/unpack/tree" "$(ls "$cache/unpack/tree/lib/modules")"
    mv "$cache/unpack/tree" "$cache/kernel"
    rm -rf "$cache/unpack"
    echo "$cache/kernel"
}

# Adds a module's dependencies, then the module, to the array `ordered`.
order_module()
{
    local path=$1 dependency

    while read -r dependency; do
        order_module "$dependency"
    done < <(sed -n "s|^$path: *||p" "$dep_file" | tr ' ' '\n' | grep .)
    case " ${ordered[*]-} " in
    *" $path "*) ;;
    *) ordered+=("$path") ;;
    esac
}

# initramfs: static busybox, the modules, and init, which mounts the host's root and starts the job.
make_initramfs()
{
    local root=$1 version=$2 kernel=$3 name path
    local ordered=()

    dep_file=$kernel/lib/modules/$version/modules.dep
    for name in $modules; do
        path=$(grep -oE "^[^:]*/${name//_/[-_]}\.ko(\.xz|\.zst)?:" "$dep_file" | head -n 1) || true
        [ -n "$path" ] || skip "kernel $version has no module $name"
        order_module "${path%:}"
    done
    mkdir -p "$root/bin" "$root/lib"
    cp "$(command -v busybox)" "$root/bin/busybox"
    cp "$here/init.sh" "$root/init"
    chmod +x "$root/init"
    for path in "${ordered[@]}"; do
        cp "$kernel/lib/modules/$version/$path" "$root/lib/"
        echo "/lib/${path##*/}"
    done > "$root/modules"
    (cd "$root" && find . | LC_ALL=C sort | cpio -o -H newc --quiet | gzip -n -1)
}

prepare()
{
    mkdir -p "$cache" || skip "cannot write to $cache; set UCM_SOFTROCE_CACHE"
    exec 9> "$cache/lock"
    flock 9 # two runs may start together
    kernel=$(find_kernel)
    version=$(ls "$kernel/lib/modules")
    make_initramfs "$work/initramfs" "$version" "$kernel" > "$work/initramfs.gz"
    exec 9>&-
}

# Some machines have a /dev/kvm in which an unmodified guest hangs: one boot with a short limit tells,
# and is remembered until this machine boots again.
choose_accelerator()
{
    local answer_file boot_id

    case ${UCM_SOFTROCE_ACCEL:-auto} in
    kvm | tcg)
        accel=$UCM_SOFTROCE_ACCEL
        return
        ;;
    auto) ;;
    *) skip "UCM_SOFTROCE_ACCEL is auto, kvm or tcg" ;;
    esac
    accel=tcg
    [ -w /dev/kvm ] || return 0
    boot_id=$(cat /proc/sys/kernel/random/boot_id)
    answer_file=$cache/accel-$boot_id
    if [ ! -f "$answer_file" ]; then
        mkdir -p "$work/probe"
        echo 'exit 0' > "$work/probe/job.sh"
        : > "$work/probe/keep"
        accel=kvm
        boot "$work/probe" "$work/probe.log" 15 > /dev/null 2>&1 || true
        grep -aq "$marker 0" "$work/probe.log" 2>/dev/null || accel=tcg
        rm -f "$cache"/accel-*
        echo "$accel" > "$answer_file"
    fi
    accel=$(cat "$answer_file")
}

# boot JOB_DIR CONSOLE_LOG LIMIT: the job's output is ttyS1, which is our stdout; kernel messages and the
# exit status go to ttyS0, the log.
boot()
{
    local job=$1 log=$2 limit=$3
    local accel_arguments=(-accel "tcg,thread=multi" -cpu max)
    local share_arguments=()

    if [ "$accel" = kvm ]; then
        accel_arguments=(-accel kvm -cpu host)
    fi
    if [ -n "${UCM_SOFTROCE_RESULTS:-}" ]; then
        share_arguments=(-virtfs
            "local,path=$UCM_SOFTROCE_RESULTS,mount_tag=results,security_model=none,multidevs=remap")
    fi
    timeout --foreground "$limit" qemu-system-x86_64 -machine q35 "${accel_arguments[@]}" \
        -smp "${UCM_SOFTROCE_CPUS:-2}" -m "$memory_mb" -nodefaults -display none -no-reboot \
        -kernel "$kernel/boot/vmlinuz-$version" -initrd "$work/initramfs.gz" \
        -append "console=ttyS0 quiet loglevel=4 panic=1 oops=panic mitigations=off random.trust_cpu=on" \
        -serial "file:$log" -chardev stdio,id=job,signal=off -serial chardev:job \
        -virtfs "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap" \
        -virtfs "local,path=$job,mount_tag=job,security_model=none,readonly=on,multidevs=remap" \
        "${share_arguments[@]}" -device virtio-rng-pci < /dev/null
}

# The command with its directory and the variables that matter to it, as a script.
write_job()
{
    local job=$1 name
    shift

    {
        echo "cd $(printf %q "$PWD")"
        for name in $(compgen -e | grep -E '^(UCM_|CK_|TSAN_|ASAN_|UBSAN_|LSAN_)|^(PATH|HOME)$'); do
            case $name in
            UCM_SOFTROCE_*) ;;
            *) echo "export $name=$(printf %q "${!name}")" ;;
            esac
        done
        echo "exec bash $(printf %q "$here/inside.sh") $(printf '%q ' "$@")"
    } > "$job/job.sh"
    if [ -n "${UCM_SOFTROCE_RESULTS:-}" ]; then
        touch "$job/results" # init mounts the share then
    fi
    # /tmp, /run and /dev are fresh inside; a build directory there has to be carried over.
    {
        echo "$PWD"
        echo "$here"
        tr ':' '\n' <<< "${UCM_SOFTROCE_KEEP:-}"
    } | grep -E '^/(tmp|run|dev)/' | sort -u > "$job/keep" || true
}

main()
{
    local code

    [ $# -gt 0 ] || { echo "usage: run_in_vm.sh COMMAND [ARGUMENT...]" >&2; exit 2; }
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    require_tools
    prepare
    choose_accelerator
    mkdir -p "$work/job"
    write_job "$work/job" "$@"

    code=0
    boot "$work/job" "$work/console.log" "$limit_s" || code=$?
    if [ "$code" -eq 124 ]; then
        echo "softroce: not done after $limit_s s (LIMIT_S); the kernel said:" >&2
        tail -n 40 "$work/console.log" >&2
        exit 124
    fi
    code=$(grep -aoE "$marker [0-9]+" "$work/console.log" | tail -n 1 | cut -d ' ' -f 2) || true
    if [ -z "$code" ]; then
        echo "softroce: the machine died before the command ended; the kernel said:" >&2
        tail -n 80 "$work/console.log" >&2
        exit 1
    fi
    if [ "$code" -ne 0 ] || [ -n "${UCM_SOFTROCE_VERBOSE:-}" ]; then
        echo "softroce: the command's status is $code ($accel); the kernel said:" >&2
        cat "$work/console.log" >&2
    fi
    exit "$code"
}

main "$@"
