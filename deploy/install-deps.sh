#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages of the lists given (default: deploy/packages.txt) that are missing.
# Usage: deploy/install-deps.sh [LIST…]; installs as root, or through sudo.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
[ $# -gt 0 ] || set -- "$top/deploy/packages.txt"

missing=()
while read -r package; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing+=("$package")
done < <(grep -hvE '^(#|$)' "$@" | sort -u)
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "install-deps: these packages are missing, and this is not Debian: ${missing[*]}" >&2
    exit 1
fi
run=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
        echo "install-deps: run as root, or install: ${missing[*]}" >&2
        exit 1
    }
    run=(sudo)
fi
echo "install-deps: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${run[@]}" apt-get update -q
"${run[@]}" apt-get install -q -y --no-install-recommends "${missing[@]}"
