#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command on SoftRoCE in user-mode Linux: one process of this machine, without emulation, so that what
# the processor does takes its real time. For benchmarks; tests run in run_in_vm.sh, on a stock kernel. The root
# file system inside is this machine's, read-only. The machine has one processor.
#
# usage: run_in_uml.sh COMMAND [ARGUMENT...]    (README.md lists the environment variables)
# exit:  the command's own status; 77 without a kernel; 124 over LIMIT_S
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${UCM_SOFTROCE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ucm-softroce}
kernel=${UCM_UML_KERNEL:-$cache/uml/linux}
limit_s=${LIMIT_S:-300}
memory_mb=${UCM_SOFTROCE_MEMORY_MB:-2048}

# mount_line ro|rw FROM TO: prints a command that mounts a directory of this machine inside.
mount_line()
{
    echo "mkdir -p $(printf %q "$3") && mount -t hostfs -o $1,$(printf %q "$2") none $(printf %q "$3")"
}

# /tmp, /run and /dev are fresh inside; a build directory there has to be carried over.
print_mounts()
{
    local job=$1 path

    {
        echo "$PWD"
        echo "$here"
        tr ':' '\n' <<< "${UCM_SOFTROCE_KEEP:-}"
    } | { grep -E '^/(tmp|run|dev)/' || true; } | sort -u | while read -r path; do
        mount_line ro "$path" "$path"
    done
    mount_line rw "$job" /run/job
    [ -z "${UCM_SOFTROCE_RESULTS:-}" ] || mount_line rw "$UCM_SOFTROCE_RESULTS" /tmp/results
}

# What runs as init inside, its output on the second console: mounts, variables, the command, the end.
write_init()
{
    local job=$1 name
    shift

    {
        cat << 'EOS'
#!/bin/bash
mount -t proc proc /proc
mount -t sysfs sys /sys
mountpoint -q /dev || mount -t devtmpfs dev /dev
exec < /dev/null > /dev/tty1 2>&1
stty -F /dev/tty1 -opost -echo
mkdir -p /dev/shm
ln -sf /proc/self/fd /dev/fd
for path in /dev/shm /run /tmp; do mount -t tmpfs none "$path"; done
EOS
        print_mounts "$job"
        for name in $(compgen -e | grep -E '^(UCM_|CK_|TSAN_|ASAN_|UBSAN_|LSAN_)|^(PATH|HOME)$'); do
            case $name in
            UCM_SOFTROCE_* | UCM_UML_*) ;;
            *) echo "export $name=$(printf %q "${!name}")" ;;
            esac
        done
        echo "cd $(printf %q "$PWD")"
        echo "bash $(printf %q "$here/inside.sh") $(printf '%q ' "$@")"
        cat << 'EOS'
echo $? > /run/job/status
sync
exec busybox poweroff -f
EOS
    } > "$job/init.sh"
    chmod +x "$job/init.sh"
}

[ $# -gt 0 ] || { echo "usage: run_in_uml.sh COMMAND [ARGUMENT...]" >&2; exit 2; }
if [ ! -x "$kernel" ]; then
    echo "softroce: no user-mode kernel at $kernel; build it with test/softroce/build_uml.sh" >&2
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/job"
write_init "$work/job" "$@"

# On one processor: the kernel and the processes it traces take turns, and waking another processor is dear.
processor=$(taskset -cp $$ | sed 's/.*[-, ]//')
code=0
timeout --foreground "$limit_s" taskset -c "$processor" "$kernel" "mem=${memory_mb}M" root=/dev/root rootfstype=hostfs rootflags=/ ro \
    "init=$work/job/init.sh" "uml_dir=$work" con=null con0=null,fd:3 con1=fd:0,fd:4 quiet \
    < /dev/null 3> "$work/console.log" 4>&1 >> "$work/console.log" 2>&1 || code=$?
if [ "$code" -eq 124 ]; then
    echo "softroce: not done after $limit_s s (LIMIT_S); the kernel said:" >&2
    cat "$work/console.log" >&2
    exit 124
fi
if [ ! -s "$work/job/status" ]; then
    echo "softroce: the machine died before the command ended (status $code); the kernel said:" >&2
    cat "$work/console.log" >&2
    exit 1
fi
exit "$(cat "$work/job/status")"
