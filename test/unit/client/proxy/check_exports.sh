#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_exports.sh NM LIBRARY HEADER…: what the library exports under UCM_1.0 is what the headers declare.
set -eu
nm=$1
library=$2
shift 2

exported=$("$nm" -D --defined-only "$library" | awk '$2 != "A" { print $3 }')
wrong=$(echo "$exported" | grep -Ev '^uc_[a-z0-9_]+@@UCM_(1\.0|PRIVATE)$' || true)
# An API function is named by the first "uc_…(" of a declaration; callbacks and types have no parenthesis there.
declared=$(cat "$@" | tr '\n' ' ' | grep -oE 'UC_API [^;]*;' | sed -E 's/^[^(]*[ *](uc_[a-z0-9_]+)\(.*/\1/' | sort)
public=$(echo "$exported" | sed -n 's/@@UCM_1\.0$//p' | sort)
if [ -n "$wrong" ] || [ "$declared" != "$public" ]; then
    echo "exports of $library without version or prefix: $wrong"
    echo "declared in $*:"
    echo "$declared"
    echo "exported:"
    echo "$public"
    exit 1
fi
