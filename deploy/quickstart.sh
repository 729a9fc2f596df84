#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh clone to two inference nodes that share prefixes through a server: installs what is missing
# (Debian packages), builds, starts ucm-server, replays a generated request trace through two nodes of two
# processes each, and compares the hits with the ones stored in deploy/quickstart.expected.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"

deploy/install-deps.sh deploy/packages.txt
echo "quickstart: building into build/release"
mkdir -p build
if ! { cmake --preset release -G Ninja -DUCM_BUILD_UNIT_TESTS=OFF &&
    cmake --build --preset release; } >build/quickstart.log 2>&1; then
    tail -n 40 build/quickstart.log >&2
    exit 1
fi

echo "quickstart: replaying a generated trace: 2 nodes, a scheduler and a worker process each"
report=$(build/release/bin/ucm-bench replay --generate 7:400 --nodes 2 --capacity-blocks 1000 \
    --block-bytes 65536 --policy lru --fabric auto --spawn-server --json 2>build/quickstart-replay.log) ||
    { tail -n 20 build/quickstart-replay.log >&2; exit 1; }
keys='requests block_refs prefix_hits cross_node_hits written_blocks present_blocks evicted_blocks mismatches errors'
actual=$(for key in $keys; do
    printf '%s %s\n' "$key" "$(grep -oE "\"$key\": ?[0-9]+" <<<"$report" | head -n 1 | grep -oE '[0-9]+$')"
done)
echo "$actual"
if [ "$actual" != "$(cat deploy/quickstart.expected)" ]; then
    echo "quickstart: these are not the expected numbers:" >&2
    diff deploy/quickstart.expected - <<<"$actual" >&2 || true
    exit 1
fi
echo "quickstart: as expected, and every byte read back was compared"
