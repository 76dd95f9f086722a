#!/usr/bin/env bash
# Two builds of the peer answer the same questions in slices of 50 ms on one core, so that both meet the same machine.
# usage: peer-turns.sh QUERIES CLASSES BEFORE_PEER BEFORE_FOLDER AFTER_PEER AFTER_FOLDER
# A folder is one that its peer's `load` filled; how segments lie changes Q6or by a sixth, so compare several folders.
set -euo pipefail
[ $# = 6 ] || { sed -n '2,4s/^# //p' "$0" >&2 && exit 2; }
exec python3 - "$@" <<'PYTHON'
import json, os, signal, subprocess, sys, tempfile, time

queries, classes, *programs = sys.argv[1:]
programs = list(zip(programs[::2], programs[1::2]))
# Half of the time each, so twice as long as alone.
environment = {"WARM_S": "1", "MEASURE_S": "6", "MAX_S": "14"} | os.environ


def switch(process, to):
    if process.poll() is None:
        process.send_signal(to)


print("class     p50 us: before  after  ratio   p95 ratio   rate, ratio   same answers")
for kind in classes.split(","):
    with tempfile.TemporaryDirectory() as folder:
        outs = [f"{folder}/{nth}.json" for nth in range(2)]
        processes = [
            subprocess.Popen(
                ["taskset", "-c", "1", peer, "query", data, queries, out, f"{out}.tsv"],
                env=environment | {"CLASSES": kind},
                stderr=open(f"{out}.log", "w"),
            )
            for (peer, data), out in zip(programs, outs)
        ]
        running, waiting = processes
        switch(waiting, signal.SIGSTOP)
        while all(process.poll() is None for process in processes):
            time.sleep(0.05)
            running, waiting = waiting, running
            switch(waiting, signal.SIGSTOP)
            switch(running, signal.SIGCONT)
        switch(waiting, signal.SIGCONT)
        for process, out in zip(processes, outs):
            if process.wait():
                sys.exit(open(f"{out}.log").read())
        before, after = (
            next(line for line in json.load(open(out)) if line["clients"] == 1) for out in outs
        )
    ratio = lambda figure: after[figure] / before[figure]
    same = before["hits_checksum"] == after["hits_checksum"]
    print(
        f"{kind:9} {before['p50_us']:14.1f} {after['p50_us']:6.1f} {ratio('p50_us'):6.3f} {ratio('p95_us'):11.3f}"
        f" {ratio('qps'):13.3f}   {same}",
        flush=True,
    )
PYTHON
