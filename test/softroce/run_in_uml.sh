#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command on SoftRoCE in user-mode Linux: one process of this machine, without emulation, so that what
# the processor does takes its real time. For benchmarks; tests run in run_in_vm.sh, on a stock kernel. The root
# file system inside is this machine's, read-only.
#
# usage: run_in_uml.sh COMMAND [ARGUMENT...]    (kernel: UCM_UML_KERNEL, else what build_uml.sh built)
# exit:  the command's own status; 77 without a kernel; 124 over LIMIT_S (default 300)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${UCM_SOFTROCE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ucm-softroce}
kernel=${UCM_UML_KERNEL:-$cache/uml/linux}
limit_s=${LIMIT_S:-300}
memory_mb=${UCM_SOFTROCE_MEMORY_MB:-2048}

# What runs as init inside: fresh /tmp, /run and /dev, what is to be carried over, then the command.
write_init()
{
    local job=$1 name path
    shift

    {
        cat << 'EOS'
#!/bin/bash
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
mount -t proc proc /proc && mount -t sysfs sys /sys && mount -t devtmpfs dev /dev
mkdir -p /dev/shm && ln -sf /proc/self/fd /dev/fd
for path in /dev/shm /run /tmp; do mount -t tmpfs none "$path"; done
EOS
        {
            echo "$PWD"
            echo "$here"
            tr ':' '\n' <<< "${UCM_SOFTROCE_KEEP:-}"
        } | grep -E '^/(tmp|run|dev)/' | sort -u | while read -r path; do
            echo "mkdir -p $(printf %q "$path") && mount -t hostfs -o $(printf %q "$path") none $(printf %q "$path")"
        done
        echo "mkdir -p /run/job && mount -t hostfs -o $(printf %q "$job") none /run/job"
        echo 'stty -opost -echo'
        echo "cd $(printf %q "$PWD")"
        for name in $(compgen -e | grep -E '^(UCM_|CK_)|^HOME$'); do
            case $name in
            UCM_SOFTROCE_* | UCM_UML_*) ;;
            *) echo "export $name=$(printf %q "${!name}")" ;;
            esac
        done
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

code=0
timeout --foreground "$limit_s" "$kernel" "mem=${memory_mb}M" root=/dev/root rootfstype=hostfs rootflags=/ ro \
    "init=$work/job/init.sh" "uml_dir=$work" con=null con0=fd:0,fd:1 quiet < /dev/null || code=$?
if [ "$code" -eq 124 ]; then
    echo "softroce: not done after $limit_s s (LIMIT_S)" >&2
    exit 124
fi
if [ ! -s "$work/job/status" ]; then
    echo "softroce: the machine died before the command ended (status $code)" >&2
    exit 1
fi
exit "$(cat "$work/job/status")"
