#!/bin/busybox sh
# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# init of the virtual machine (run_in_vm.sh puts it into the initramfs). Runs the job and powers off.
/bin/busybox mkdir -p /proc /sys /dev /root /job /keep
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox ln -s /proc/self/fd /dev/fd
export PATH=/bin
/bin/busybox --install -s /bin

while read -r module; do
    insmod "$module" || echo "insmod $module failed"
done < /modules

mount_share()
{
    mount -t 9p -o "trans=virtio,version=9p2000.L,msize=1048576,$3" "$1" "$2"
}

mount_share host /root cache=loose,ro
mount_share job /job ro

# What lies below a directory that gets a fresh tmpfs is reached through a second mount.
count=0
while read -r path; do
    count=$((count + 1))
    mkdir -p "/keep/$count"
    mount --bind "/root$path" "/keep/$count"
done < /job/keep

mount --bind /proc /root/proc
mount --bind /sys /root/sys
mount --bind /dev /root/dev
mkdir -p /dev/shm
for path in /tmp /run /dev/shm; do
    mount -t tmpfs none "/root$path"
done
if [ -f /job/results ]; then
    mkdir -p /root/tmp/results
    mount_share results /root/tmp/results cache=none
fi

count=0
while read -r path; do
    count=$((count + 1))
    mkdir -p "/root$path"
    mount --bind "/keep/$count" "/root$path"
done < /job/keep

cp /job/job.sh /root/tmp/job.sh
stty -F /dev/ttyS1 -opost -echo
chroot /root /bin/bash /tmp/job.sh < /dev/null > /dev/ttyS1 2>&1
code=$?
sync
# Wait until the serial port has sent everything: powering off drops what it still holds.
stty -F /dev/ttyS1 > /dev/null
sleep 0.2
echo "UCM-SOFTROCE-EXIT $code"
sleep 0.1
echo o > /proc/sysrq-trigger
sleep 10
