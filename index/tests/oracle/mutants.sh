#!/usr/bin/env bash
# Finds out whether the oracle finds mistakes: puts each of `mutants` into a scratch copy of the tree, one at a time, and
# runs the oracle there. A mutant is caught by the first wrong answer; one that survives, doesn't build, or whose text isn't
# found exactly once makes this fail. Arguments: the numbers of the mutants to run, all without any.
#
# CARGO may name another cargo; SCRATCH a folder to keep between runs, which saves building everything again.
set -euo pipefail
tests=$(cd "$(dirname "$0")" && pwd)
tree=$(cd "$tests/../../.." && pwd)
scratch=${SCRATCH:-$(mktemp -d)}
[ -n "${SCRATCH:-}" ] || trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch"
cd "$tree"
git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- -cf - | tar --touch -xf - -C "$scratch"
exec python3 - "$tests/mutants" "$scratch" "$@" <<'PYTHON'
import os, pathlib, re, signal, subprocess, sys, time

listed, scratch, *chosen = sys.argv[1:]
parts = re.split(r"^=== (.*)\n", pathlib.Path(listed).read_text(), flags=re.M)[1:]
mutants = []
for name, text in zip(parts[::2], parts[1::2]):
    file, old, new = re.fullmatch(r"--- (.*?)\n(.*?)\n\+\+\+\n(.*?)\n+", text, flags=re.S).groups()
    path = pathlib.Path(scratch, "index/src", file)
    found = path.read_text().count(old)
    if found != 1 or old == new:
        sys.exit(f"{name}: its text is in {file} {found} times")
    mutants.append((name, path, old, new))
print(f"{len(mutants)} mutants", flush=True)

cargo = [os.environ.get("CARGO", "cargo"), "test", "-p", "souk-index", "--test", "oracle"]
# A line changes at a time.
environment = dict(os.environ, CARGO_TARGET_DIR=str(pathlib.Path(scratch, "target")), CARGO_INCREMENTAL="1")
environment.pop("SOUK_LONG", None)
options = dict(cwd=scratch, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def build():
    built = subprocess.run([*cargo, "--no-run"], **options)
    return built.returncode == 0, built.stdout


def wrong_answer():
    with subprocess.Popen([*cargo, "--", "--nocapture"], start_new_session=True, **options) as oracle:
        for line in oracle.stdout:
            if re.search("failed; to repeat|panicked at", line):
                os.killpg(oracle.pid, signal.SIGKILL)
                return line.strip()
    return "" if oracle.returncode == 0 else "it failed"


def settle():
    # Cargo tells by the time of a file whether it has changed.
    time.sleep(1.1)


built, output = build()
if not built:
    sys.exit("without any mutant it doesn't build:\n" + output)
if wrong := wrong_answer():
    sys.exit(f"without any mutant there is a wrong answer: {wrong}")
missed = 0
for nth, (name, path, old, new) in enumerate(mutants, 1):
    if chosen and str(nth) not in chosen:
        continue
    original = path.read_text()
    settle()
    path.write_text(original.replace(old, new))
    try:
        built, output = build()
        wrong = wrong_answer() if built else ""
    finally:
        settle()
        path.write_text(original)
    verdict = "doesn't build" if not built else "caught" if wrong else "SURVIVED"
    missed += verdict != "caught"
    print(f"{nth}. {verdict}: {name} ({wrong})", flush=True)
    if not built:
        print("\n".join(output.splitlines()[-25:]), flush=True)
sys.exit(f"{missed} not caught" if missed else 0)
PYTHON
