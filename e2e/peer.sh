#!/usr/bin/env bash
# Souk beside other databases: their comparison calls this. $data is the folder of the rows.
# usage: peer.sh load | query QUERIES OUT_JSON ANSWERS_TSV | stop
# First: cargo build --release -p souk-standalone && cargo build --release -p souk-e2e --example peer
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
release=${CARGO_TARGET_DIR:-$root/target}/release
dir=${data:?is the folder of the rows}/souk # database, logs, how far the load has come
peer=$(basename "$0" .sh)

running() { [ -e "$dir/pid" ] && [ "$(ps -o comm= -p "$(cat "$dir/pid")")" = souk ]; }

start() {
    if running; then return; fi
    mkdir -p "$dir"
    rm -f "$dir/out"
    "$release/souk" serve --listen 127.0.0.1:0 --data "$dir/db" >"$dir/out" 2>"$dir/log" &
    echo $! >"$dir/pid"
    until grep -qs 'listening on' "$dir/out"; do
        kill -0 $! || { tail "$dir/log" >&2 && exit 1; }
        sleep 0.1
    done
}

stop() {
    if ! running; then return; fi
    kill "$(cat "$dir/pid")"
    while running; do sleep 0.1; done
    rm "$dir/pid"
}

address() { sed -n 's|.*listening on |http://|p' "$dir/out"; }

# Loads one kind and prints how many seconds it took until searches saw all of it.
load() {
    local kind=$1 file=$data/$1.ndjson rows=$2 last from
    last=$(tail -n 1 "$file" | cut -d '"' -f 4) # the id is the first field
    from=$(date +%s.%N)
    "$release/souk" load "$kind" --file "$file" --target "$(address)" --state "$dir/state" >&2
    "$release/examples/peer" await "$(address)" "$kind" "$last" "$rows"
    bc <<<"$(date +%s.%N) - $from"
}

# The bytes are counted after the end of the server, which brings everything to the disk.
load_all() {
    local kind folder rows seconds=() bytes
    local -A folders=([orders]=order [shops]=shop [media]=media)
    rm -rf "$dir/db" "$dir/state"
    start
    "$release/examples/peer" words "$(address)"
    for kind in orders shops media; do seconds+=("$(load "$kind" "$(wc -l <"$data/$kind.ndjson")")"); done
    stop
    for kind in orders shops media; do
        folder=${folders[$kind]} rows=$(wc -l <"$data/$kind.ndjson")
        bytes=$(du -s --block-size=1 "$dir/db/$folder" | cut -f 1)
        awk -v peer="$peer" -v kind="$kind" -v rows="$rows" -v seconds="${seconds[0]}" -v bytes="$bytes" 'BEGIN {
            printf "{\"peer\":\"%s\",\"kind\":\"%s\",\"rows\":%d,\"seconds\":%.1f,\"rows_per_s\":%.0f,\"bytes\":%.0f,\"bytes_per_row\":%.0f}\n",
                peer, kind, rows, seconds, rows / seconds, bytes, bytes / rows }'
        seconds=("${seconds[@]:1}")
    done
}

case ${1-} in
load) stop && load_all ;;
query) start && "$release/examples/peer" query "$(address)" "${@:2}" ;;
stop) stop ;;
*) sed -n '2,4s/^# //p' "$0" >&2 && exit 2 ;;
esac
