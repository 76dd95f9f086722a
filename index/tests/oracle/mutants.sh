#!/usr/bin/env bash
# Finds out whether the oracle finds mistakes: puts each of `mutants` into a scratch copy of the tree, one at a time, and
# runs the oracle there. A mutant is caught when the oracle fails; one that survives, doesn't build, or whose text isn't
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
git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- -cf - | tar -xf - -C "$scratch"
exec python3 - "$tests/mutants" "$scratch" "$@" <<'PYTHON'
import os, pathlib, re, subprocess, sys, time

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
environment = dict(os.environ, CARGO_TARGET_DIR=str(pathlib.Path(scratch, "target")))
environment.pop("SOUK_LONG", None)


def run(*arguments):
    out = subprocess.run([*cargo, *arguments], cwd=scratch, env=environment, capture_output=True, text=True)
    return out.returncode == 0, out.stdout + out.stderr


def settle():
    # Cargo tells by the time of a file whether it has changed.
    time.sleep(1.1)


built, output = run("--no-run")
if not built:
    sys.exit("without any mutant it doesn't build:\n" + output)
missed = 0
for nth, (name, path, old, new) in enumerate(mutants, 1):
    if chosen and str(nth) not in chosen:
        continue
    original = path.read_text()
    settle()
    path.write_text(original.replace(old, new))
    try:
        built, output = run("--no-run")
        passed, output = run() if built else (True, output)
    finally:
        settle()
        path.write_text(original)
    verdict = "doesn't build" if not built else "SURVIVED" if passed else "caught"
    missed += verdict != "caught"
    tests = sorted(set(re.findall(r"^test (\S+) \.\.\. FAILED", output, flags=re.M)))
    print(f"{nth}. {verdict}: {name} ({', '.join(tests)})", flush=True)
    if not built:
        print("\n".join(output.splitlines()[-25:]), flush=True)
sys.exit(f"{missed} not caught" if missed else 0)
PYTHON
