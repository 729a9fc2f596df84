#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs commands one after the other over verbs and says which failed; run.sh starts it where the device
# is. A command's output is shown when it fails, and kept in the results share if there is one.
#
# usage: suite.sh BUILD_DIR ['COMMAND'...]    (none = the lines of suite.txt)
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
limit_s=${UCM_SUITE_LIMIT_S:-240}

[ -n "${UCM_FABRIC_ADDRESS:-}" ] || { echo "suite.sh: UCM_FABRIC_ADDRESS is not set" >&2; exit 2; }
export UCM_FABRIC=verbs
cd "$1" || exit 2
# What the integration and fault suites read (test/integration/harness.py); emulation is slow.
export UCM_ADDRESS=$UCM_FABRIC_ADDRESS UCM_PATIENCE=${UCM_PATIENCE:-6}
export UCM_BIN=$PWD/bin UCM_TEST_NODE=$PWD/test/ucm-test-node
UCM_TESTS=$(cd "$here/.." && pwd)
export UCM_TESTS PYTHONPATH=$UCM_TESTS/integration
# Sanitizers intercept dlopen, after which the RUNPATH of the caller does not count.
export LD_LIBRARY_PATH=$PWD/lib
shift

commands=("$@")
if [ ${#commands[@]} -eq 0 ]; then
    mapfile -t commands < <(grep -vE '^(#|$)' "$here/suite.txt")
fi
[ ${#commands[@]} -gt 0 ] || { echo "suite.sh: nothing to run" >&2; exit 2; }

log_dir=$(mktemp -d)
trap 'rm -rf "$log_dir"' EXIT
failed=0
number=0
for command in "${commands[@]}"; do
    number=$((number + 1))
    log=$log_dir/$number.log
    start_s=$SECONDS
    timeout "$limit_s" bash -c "$command" > "$log" 2>&1 < /dev/null
    code=$?
    if [ $code -eq 0 ]; then
        echo "ok      $((SECONDS - start_s)) s  $command"
    else
        failed=$((failed + 1))
        echo "FAILED  $((SECONDS - start_s)) s  $command: status $code; the end of its output:"
        tail -n 100 "$log"
    fi
    if [ -w /tmp/results ]; then
        cp "$log" /tmp/results/
    fi
done

echo "softroce: $((number - failed)) of $number passed"
[ $failed -eq 0 ]
