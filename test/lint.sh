#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that a machine can make: format, shell scripts, dependencies between layers, exported symbols.
# Usage: test/lint.sh (after the release build)
set -euo pipefail
cd "$(dirname "$0")/.."
failed=0

complain() {
    echo "lint: $*" >&2
    failed=1
}

mapfile -t sources < <(git ls-files '*.c' '*.h')
mapfile -t scripts < <(git ls-files '*.sh' .ci/run)

clang-format-14 --dry-run --Werror "${sources[@]}" || complain "run clang-format-14 -i on the files above"
shellcheck "${scripts[@]}" || complain "shellcheck found something"

# Layers: core <- net <- server, client <- tools.
includes() { # includes PATTERN FOLDER…: lines that include what they must not
    local pattern=$1
    shift
    git grep -nE "^#include $pattern" -- "${@/%//*.[ch]}" || true
}
check_layer() { # check_layer FOLDER PATTERN
    local found
    found=$(includes "$2" "$1")
    [ -z "$found" ] || complain "$1 must not include this: $found"
}
check_layer core '"(net|server|client|tools|test)/'
check_layer net '"(server|client|tools|test)/'
check_layer server '"(client|tools|test)/'
check_layer client '"(server|tools|test)/'
check_layer tools '"(server|test)/'
found=$(git grep -lE '^#include <(infiniband|rdma)/' -- '*.[ch]' | grep -v '^net/verbs/' | grep -v '^test/' || true)
[ -z "$found" ] || complain "RDMA headers outside net/verbs: $found"
found=$(git grep -lE '^#include <msgpack' -- '*.[ch]' | grep -v '^net/rpc/' || true)
[ -z "$found" ] || complain "msgpack outside net/rpc: $found"

# Every rule of the contract has a test, and the table of them is current.
test/rules.py --check --quiet || complain "rules without a test, or an old test/RULES.md"

# Size: files and READMEs.
while read -r lines file; do
    [ "$lines" -le 800 ] || complain "$file has $lines lines; split it"
done < <(wc -l "${sources[@]}" | grep -v ' total$')
while read -r lines readme; do
    [ "$readme" = README.md ] || [ "$lines" -le 60 ] || complain "$readme is longer than 60 lines"
done < <(git ls-files -z '*README.md' | xargs -0 wc -l | grep -v ' total$')

# Plugins export their two entries and nothing else (R-8.1); modules their one.
for plugin in build/release/lib/libucm_store_*.so; do
    symbols=$(nm -D --defined-only "$plugin" | awk '{print $3}' | sort | tr '\n' ' ')
    [ "$symbols" = "UCCreateStore UCDestroyStore " ] || complain "$plugin exports: $symbols"
done
if [ -e build/release/lib/libucm_fabric_verbs.so ]; then
    symbols=$(nm -D --defined-only build/release/lib/libucm_fabric_verbs.so | awk '{print $3}' | tr '\n' ' ')
    [ "$symbols" = "uc_fabric_module " ] || complain "libucm_fabric_verbs.so exports: $symbols"
fi
for library in core proxy; do
    found=$(nm -D --defined-only "build/release/lib/libucm_$library.so" | awk '{print $3}' |
        grep -vE '^(uc_|UCM_)' || true)
    [ -z "$found" ] || complain "libucm_$library.so exports names outside uc_: $found"
done
# A server that never touches RDMA does not load its libraries.
if ldd build/release/bin/ucm-server | grep -qE 'libibverbs|librdmacm'; then
    complain "ucm-server links the RDMA libraries"
fi

[ $failed -eq 0 ] && echo "lint: clean"
exit $failed
