#!/usr/bin/env bash
# Souk's services in the client's process, beside other databases: their comparison calls this. $data is the folder of the rows.
# usage: souk-engine.sh load | query QUERIES OUT_JSON ANSWERS_TSV | stop
# First: cargo build --release -p souk-e2e --example peer
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
peer=${CARGO_TARGET_DIR:-$root/target}/release/examples/peer
folder=${data:?is the folder of the rows}/souk-engine

case ${1-} in
load) rm -rf "$folder" && "$peer" load "$data" "$folder" ;;
query) "$peer" query "$folder" "${@:2}" ;;
stop) ;;
*) sed -n '2,4s/^# //p' "$0" >&2 && exit 2 ;;
esac
