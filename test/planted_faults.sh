#!/usr/bin/env bash
# Plants faults into a copy of the cache engine, one at a time, and sees that the tests notice each.
# Usage: test/planted_faults.sh [PATTERN]     faults whose name matches the extended regular expression
# Assertions are compiled out: only what shows counts. Prints which tests caught what; fails if a fault survives.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
pattern=${1:-}
jobs=$(nproc)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
tree=$copy/tree
build=$copy/build
# What runs in seconds and has the engine under test. Threads and public traces are other suites' business.
suites=(test_block_map test_policy test_policy_clock test_policy_fifo test_policy_pwa test_ghost test_policy_cost test_cache_buffer
    test_cache_rules test_cache_buffer_vectors test_cache_buffer_journal test_cache_buffer_alloc test_cache_property)
export UCM_TEST_OPERATIONS=2000000
export CK_DEFAULT_TIMEOUT=10

# Core and its tests alone, out of the working tree as it is.
mkdir "$tree"
(cd "$top" && git ls-files -z --cached --others --exclude-standard -- CMakeLists.txt core deploy/cmake test/fake \
    test/model test/unit/core | while IFS= read -r -d '' file; do
    [ ! -e "$file" ] || printf '%s\0' "$file"
done | tar -c --null -T - | tar -x -C "$tree")
sed -i -E -e '/^add_subdirectory\((net|server|client|tools)\)/d' \
    -e 's|^( *)add_subdirectory\(test\)|\1pkg_check_modules(CHECK REQUIRED IMPORTED_TARGET check)\n&/unit/core)|' \
    -e 's|\(test\)/unit/core\)|(test/unit/core)|' "$tree/CMakeLists.txt"
cmake -S "$tree" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS='-O1 -DNDEBUG -w' >"$copy/log" 2>&1 ||
    { tail -n 20 "$copy/log"; exit 1; }

# Builds what is out of date and runs the suites. Prints the names of those that failed.
failing_suites() {
    local suite
    cmake --build "$build" -j "$jobs" --target "${suites[@]}" >"$copy/log" 2>&1 || { echo build; return; }
    for suite in "${suites[@]}"; do
        (timeout 60 "$build/test/$suite" >/dev/null 2>&1 || echo "$suite") &
    done | sort
}

# plant FILE ANCHOR OLD NEW: changes one line; fails if it is not there.
plant() {
    local line found=no behind=no
    while IFS= read -r line || [ -n "$line" ]; do
        if [ "$2" = - ] || [[ $line == *"$2"* ]]; then
            behind=yes
        fi
        if [ $behind = yes ] && [ $found = no ] && [[ $line == *"$3"* ]]; then
            line=${line%%"$3"*}$4${line#*"$3"}
            found=yes
        fi
        printf '%s\n' "$line"
    done <"$1" >"$copy/planted"
    [ $found = yes ] && cp "$copy/planted" "$1"
}

found=$(failing_suites)
if [ -n "$found" ]; then
    echo "planted faults: these fail without any fault:" "$found" >&2
    if [ "$found" = build ]; then tail -n 20 "$copy/log" >&2; fi
    exit 1
fi

caught=0
survived=()
while IFS=$'\t' read -r name file anchor old new; do
    case $name in '' | '#'*) continue ;; esac
    [[ $name =~ $pattern ]] || continue
    [ "$new" != - ] || new=
    cp "$tree/$file" "$copy/original"
    if ! plant "$tree/$file" "$anchor" "$old" "$new"; then
        echo "planted faults: '$name': no such line in $file any more: '$old'" >&2
        exit 1
    fi
    found=$(failing_suites)
    cp "$copy/original" "$tree/$file"
    if [ "$found" = build ]; then
        echo "planted faults: '$name' does not compile:" >&2
        tail -n 20 "$copy/log" >&2
        exit 1
    elif [ -z "$found" ]; then
        survived+=("$name")
        printf '%-58s SURVIVED\n' "$name"
    else
        caught=$((caught + 1))
        printf '%-58s %s\n' "$name" "$(tr '\n' ' ' <<<"${found//test_/}")"
    fi
done <"$top/test/planted_faults.txt"

echo "planted faults: $caught of $((caught + ${#survived[@]})) caught"
[ ${#survived[@]} -eq 0 ]
