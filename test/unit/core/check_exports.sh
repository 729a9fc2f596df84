#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_exports.sh NM LIBRARY: everything a library exports starts with uc_ and has a version.
set -eu

# Version nodes themselves are listed as absolute symbols (type A).
wrong=$("$1" -D --defined-only "$2" | awk '$2 != "A" && $3 !~ /^uc_[a-z0-9_]+@@UCM_(1\.0|PRIVATE)$/ { print $3 }')
if [ -n "$wrong" ]; then
    echo "exported by $2, but not to be:"
    echo "$wrong"
    exit 1
fi
# A public name that is missing would show when somebody links; one sample proves that the list was read.
"$1" -D --defined-only "$2" | grep -q ' uc_status_name@@UCM_1.0$'
