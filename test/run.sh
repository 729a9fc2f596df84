#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests. Usage: test/run.sh [--quick | --softroce | --all | --long]
#   --quick     release build; unit, conformance, integration and fault tests over tcp (about 3 minutes)
#   --softroce  the fabric conformance and the integration suite over verbs on SoftRoCE
#   --all       everything (the default): --quick, style and export checks, clang, ASan+UBSan, TSan, SoftRoCE
#   --long      --all, faults planted into the cache engine, and more random operations against its model
# Missing Debian packages are installed first. Traces are taken from UCM_TRACE_DIR (default: ../shared/traces);
# tests that need them say so when they are absent. With CI=true a skipped suite is a failure.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
jobs=$(nproc)
export UCM_TRACE_DIR=${UCM_TRACE_DIR:-$top/../shared/traces}
export CTEST_OUTPUT_ON_FAILURE=1

say() {
    printf '\n== %s\n' "$*"
}

# build PRESET [cmake argument…]; the quickstart may have configured the same folder without tests
build() {
    local preset=$1
    shift
    say "build $preset"
    cmake --preset "$preset" -G Ninja -DUCM_BUILD_UNIT_TESTS=ON "$@" >"build/$preset.configure.log" 2>&1 ||
        { cat "build/$preset.configure.log"; return 1; }
    cmake --build --preset "$preset" -j "$jobs" >"build/$preset.build.log" 2>&1 ||
        { tail -n 60 "build/$preset.build.log"; return 1; }
}

# suite PRESET [ctest argument…]
suite() {
    local preset=$1
    shift
    say "test $preset $*"
    (cd "build/$preset" && ctest --no-tests=error --timeout 900 "$@")
}

quick() {
    build release -DUCM_WERROR=ON -DUCM_WITH_PYTHON=ON
    suite release -LE softroce
}

lint() {
    say "style, layers, exports"
    test/lint.sh
}

clang() {
    build clang -DUCM_WERROR=ON
}

# Without -Werror: instrumented code makes gcc's flow warnings see things that are not there.
sanitizers() {
    build asan -DUCM_WITH_PYTHON=ON
    suite asan -LE 'softroce|no-sanitizer'
    build tsan
    suite tsan -LE 'softroce|no-sanitizer|fuzz'
}

softroce() {
    build release -DUCM_WERROR=ON
    suite release -L softroce
}

all() {
    quick
    lint
    clang
    softroce
    sanitizers
}

long() {
    all
    say "planted faults"
    test/planted_faults.sh
    say "random operations"
    UCM_TEST_LONG=1 build/release/test/test_cache_property
}

what=${1:---all}
[ $# -le 1 ] || what=usage
case $what in
--quick | --softroce | --all | --long) ;;
-h | --help)
    sed -n '3,9s/^# //p' "$0"
    exit 0
    ;;
*)
    echo "usage: test/run.sh [--quick | --softroce | --all | --long]" >&2
    exit 2
    ;;
esac

lists=(deploy/packages.txt test/packages.txt)
[ "$what" = --quick ] || lists+=(test/softroce/packages.txt)
deploy/install-deps.sh "${lists[@]}"
mkdir -p build
if [ ! -d "$UCM_TRACE_DIR" ]; then
    echo "run.sh: no traces in $UCM_TRACE_DIR: tests on public traces are skipped (set UCM_TRACE_DIR)"
fi

case $what in
--quick) quick ;;
--softroce) softroce ;;
--all) all ;;
--long) long ;;
esac
say "all passed ($what)"
