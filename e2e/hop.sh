#!/bin/sh
# What the gateway's hop costs, against nginx grpc_pass: builds both programs and runs e2e/examples/hop.
# On a quiet machine; arguments go to the example, as in: e2e/hop.sh --seconds 10 --rounds 5
# e2e/hop.sh --front: searches and writes a second of souk serve, and the memory of an idle suite.
# e2e/hop.sh --tables: rows of tables that users define against orders, and what many tables cost.
# e2e/hop.sh [--front] --against OTHER: those of two programs in turns, for a machine whose speed changes.
# nginx comes from packages: apt-get install nginx-light. Without it only the gateway is measured.
set -eu
cd "$(dirname "$0")/.."
cargo build --release -p souk-standalone -p souk-e2e --example hop --bin souk
nginx=$(command -v nginx || true)
folder=${CARGO_TARGET_DIR:-target}/release
exec "$folder/examples/hop" --souk "$folder/souk" ${nginx:+--nginx "$nginx"} "$@"
