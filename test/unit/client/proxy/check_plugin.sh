#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_plugin.sh NM PLUGIN…: each exports the two entries and nothing else.
set -eu
nm=$1
shift
for plugin in "$@"; do
    symbols=$("$nm" -D --defined-only "$plugin" | awk '{ print $3 }' | sort | tr '\n' ' ')
    if [ "$symbols" != "UCCreateStore UCDestroyStore " ]; then
        echo "$plugin exports: $symbols"
        exit 1
    fi
done
