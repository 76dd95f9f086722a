#!/usr/bin/env bash
# Souk's store and RocksDB doing the same work, one after the other in one run, so that both meet the same machine.
# Needs Debian's librocksdb-dev. Ten million rows take about 15 GB of disk while they are loaded.
# usage: compare.sh FOLDER [ROWS] [CLIENTS] [SECONDS]
set -euo pipefail
if [ "$#" -lt 1 ]; then
    sed -n 's/^# usage: /usage: /p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
data="$(cd "$1" && pwd)"
rows="${2:-1000000}"
clients="${3:-1,16,64,128}"
seconds="${4:-5}"
cd "$(dirname "$0")"
target="${CARGO_TARGET_DIR:-$(cd ../.. && pwd)/target}"
(cd ../.. && cargo build --release --locked -p souk-standalone --target-dir "$target")
cargo build --release --locked --target-dir "$target"
for steps in puts load,reads; do
    "$target/release/souk" bench storage --data "$data" --rows "$rows" --clients "$clients" --seconds "$seconds" --steps "$steps"
    "$target/release/peer-rocksdb" "$data" "$rows" "$clients" "$seconds" "$steps"
done
