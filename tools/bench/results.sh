#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Measures transports with ucm-bench fabric and writes a table in Markdown: blocks of 64 KiB to 8 MiB in 1 and 32
# pieces, read and written. Parts can be measured one by one: what is in FOLDER is not measured again. A row that
# is interrupted leaves nothing. UCM_RESULTS_NAME names what is measured if the transport's name does not do.
#
# usage: results.sh measure BUILD_DIR FOLDER FABRIC [OPTION...]   (options of ucm-bench fabric)
#        results.sh table FOLDER                                  (prints the table)
set -euo pipefail

sizes=${UCM_RESULTS_SIZES:-64KiB 256KiB 1MiB 8MiB}
pieces=${UCM_RESULTS_PIECES:-1 32}
operations=${UCM_RESULTS_OPS:-read write}
seconds=${UCM_RESULTS_SECONDS:-1}

usage()
{
    sed -n '7,8s/^# *//p' "${BASH_SOURCE[0]}" >&2
    exit 2
}

# About 16 MiB in flight, as a worker that loads a prompt would have, but 4 to 64 operations.
depth_of()
{
    case $1 in
    64KiB) echo 64 ;;
    256KiB) echo 32 ;;
    1MiB) echo 16 ;;
    *) echo 4 ;;
    esac
}

# What ran where, for the head of the table.
describe_machine()
{
    local processor

    processor=$(sed -n 's/^model name[[:space:]]*: *//p' /proc/cpuinfo | head -n 1)
    jq -n --arg date "$(date -u +%F)" --arg kernel "$(uname -sr)" --arg processor "$processor" \
        --arg processors "$(nproc)" --arg options "$*" '$ARGS.named'
}

measure()
{
    local build=$1 folder=$2 fabric=$3 size piece op file name=${UCM_RESULTS_NAME:-$3}
    shift 3

    mkdir -p "$folder"
    describe_machine "$@" > "$folder/$name.machine"
    for op in $operations; do
        for piece in $pieces; do
            for size in $sizes; do
                file=$folder/$name-$op-$piece-$size.json
                [ ! -s "$file" ] || continue
                if "$build/bin/ucm-bench" fabric --fabric "$fabric" --op "$op" --block-bytes "$size" \
                    --pieces "$piece" --depth "$(depth_of "$size")" --seconds "$seconds" --json "$@" \
                    > "$file.new"; then
                    mv "$file.new" "$file"
                else
                    echo "results.sh: $fabric $op $size in $piece pieces failed" >&2
                    rm -f "$file.new"
                fi
            done
        done
    done
}

print_row()
{
    jq -r '
        def fixed($digits): if . == null then "–" else
            . * pow(10; $digits) | round / pow(10; $digits) | tostring end;
        def percent: . * 1000 | round / 10 | tostring + " %";
        "| " + ([.op, $size, (.pieces | tostring), (.depth | tostring),
            (.gbytes_per_s | fixed(3)), (.ratio | fixed(2)),
            (.verified.gbytes_per_s | fixed(3)), (.verified.ratio | fixed(2)),
            (.limit.gbytes_per_s | fixed(3)), (.p50_us | fixed(0)), (.p99_us | fixed(0)),
            (.one_at_a_time.p50_us | fixed(0)),
            (.cpu_s_per_gbyte.client | fixed(3)), (.cpu_s_per_gbyte.server | fixed(3)),
            (.cpu_share.server | percent)] | join(" | ")) + " |"' --arg size "$2" "$1"
}

print_fabric()
{
    local folder=$1 name=$2 first op piece size file
    first=$(find "$folder" -name "$name-*.json" | head -n 1)
    [ -n "$first" ] || return 0

    echo "### $name"
    echo
    jq -r '"Limit: \(.limit.name // .limit.reason). Working set " +
        "\(.working_set_bytes / 1048576 | floor) MiB, last-level cache " +
        "\(.last_level_cache_bytes / 1048576 | floor) MiB; \(.buffers) buffers; medians of \(.rounds) rounds.\n"' "$first"
    jq -r '"Measured \(.date): \(.processors) × \(.processor), \(.kernel). " +
        "Options besides those of the table: `\(.options)`.\n"' "$folder/$name.machine"
    echo "| op | block | pieces | depth | GB/s | of limit | verified GB/s | of limit | limit GB/s | p50 µs | p99 µs | alone µs | client s/GB | server s/GB | server CPU |"
    echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    for op in read write; do
        for piece in 1 32; do
            for size in 64KiB 256KiB 1MiB 8MiB; do
                file=$folder/$name-$op-$piece-$size.json
                [ ! -s "$file" ] || print_row "$file" "$size"
            done
        done
    done
    echo
}

case ${1:-} in
measure)
    [ $# -ge 4 ] || usage
    shift
    measure "$@"
    ;;
table)
    [ $# -eq 2 ] || usage
    find "$2" -name '*.machine' -exec basename {} .machine \; | sort | while read -r name; do
        print_fabric "$2" "$name"
    done
    ;;
*) usage ;;
esac
