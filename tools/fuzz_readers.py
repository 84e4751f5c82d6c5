"""Fuzzes every reader with atheris and writes the figures into docs/reliability.md.

    make fuzz MINUTES=60

The minutes are split evenly over the targets of tests/fuzz/reader_targets.py. One process runs at a
time. A target that finds something starts again with what is left of its time. The inputs that were
found stay in build/fuzz beside the figures, and the exit code is 1. Once they are mended,

    python -m tools.fuzz_readers --again

reads those inputs again and writes the page from the same figures.
"""

from __future__ import annotations

import argparse
import ast
import json
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.fuzz.fuzz_target import LONGEST_S
from tests.fuzz.reader_targets import TARGETS

from tools.generated_blocks import replace_block

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reliability.md"
CORPUS = ROOT / "build" / "fuzz"
FINDINGS = ROOT / "tests" / "fuzz" / "test_findings.py"
#: A target that finds this much has shown enough.
_MOST_FINDINGS = 10
#: What a process needs to start, in seconds.
_START_S = 4


def main() -> None:
    """Fuzz, and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--targets", nargs="*", default=list(TARGETS))
    parser.add_argument("--again", action="store_true", help="only read what was found again")
    parser.add_argument("--figures", type=Path, default=CORPUS / "figures.json")
    given = parser.parse_args()
    kept: dict[str, Any] = {"rows": []}
    if given.figures.exists():
        kept = json.loads(given.figures.read_text(encoding="utf-8"))
    if not given.again:
        # A run over some targets leaves the figures of the others as they are.
        others = [row for row in kept["rows"] if row["target"] not in given.targets]
        kept = {"on": f"{datetime.now(UTC):%Y-%m-%d}", "python": platform.python_version()}
        kept["rows"] = others
        seconds = given.minutes * 60 / len(given.targets)
        CORPUS.mkdir(parents=True, exist_ok=True)
        for name in given.targets:
            kept["rows"].append(fuzz_target(name, seconds))
            given.figures.write_text(json.dumps(kept, indent=1), encoding="utf-8")
    left = list(_read_again(kept["rows"]))
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(replace_block(page, "fuzzing", write_block(kept, left)), encoding="utf-8")
    sys.exit(1 if left else 0)


def _read_again(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the findings that are still there."""
    for row in rows:
        for one in row["findings"]:
            began = time.monotonic()
            try:
                TARGETS[row["target"]](Path(one["input"]).read_bytes())
                is_left = time.monotonic() - began > LONGEST_S
            except Exception:  # any is a finding
                is_left = True
            if is_left:
                yield f"`{row['target']}`: {one['error']}"


def fuzz_target(name: str, seconds: float) -> dict[str, Any]:
    """Fuzz one target and return its figures.

    Args:
        name: The target's.
        seconds: The time for it, starts of processes included.
    """
    began = time.monotonic()
    row: dict[str, Any] = {"target": name, "executions": 0, "features": 0, "findings": []}
    while len(row["findings"]) < _MOST_FINDINGS:
        left = int(seconds - (time.monotonic() - began)) - _START_S
        if left < 1:
            break
        command = [sys.executable, "-m", "tests.fuzz.fuzz_target", name]
        command += ["--seconds", str(left), "--corpus", str(CORPUS)]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False
        )
        output = done.stdout + done.stderr
        row["executions"] += max(map(int, re.findall(r"executed_units: (\d+)", output)), default=0)
        row["features"] = max(map(int, re.findall(r" ft: (\d+)", output)), default=0)
        if done.returncode != 0:
            found = re.search(r"Test unit written to (.*)", output)
            where = "" if found is None else found[1].strip()
            row["findings"].append({"error": _describe_finding(output), "input": where})
    row["minutes"] = (time.monotonic() - began) / 60
    return row


def _describe_finding(output: str) -> str:
    """Return the error and the last place of our own, or what libFuzzer says."""
    error = re.search(r"Uncaught Python exception: ===\n(.*)", output)
    if error is None:
        said = re.findall(r"ERROR: libFuzzer: (.*)", output)
        return str(said[0]) if said else output[-300:]
    places = re.findall(r'File ".*?/(src/trialwise/.*?)", line (\d+)', output)
    place = ":".join(places[-1]) if places else "?"
    return f"{error[1][:200]} ({place})"


def write_block(kept: dict[str, Any], left: list[str]) -> str:
    """Return the section of the page.

    Args:
        kept: When it was run, with which Python, and what `fuzz_target` returned for each target.
        left: The findings that are not mended.
    """
    rows, mended = kept["rows"], _list_mended()
    minutes = sum(row["minutes"] for row in rows)
    executions = sum(row["executions"] for row in rows)
    findings = sum(len(row["findings"]) for row in rows)
    lines = [
        "## Fuzzing: every reader with any bytes",
        "",
        "`make fuzz MINUTES=60` gives each reader of foreign files changed inputs, guided by",
        "coverage (atheris), and writes this section. A reader must return a value or refuse the",
        "input with a sentence. Another exception is a finding, and so is an input that takes more",
        "than 10 s or 2 GB. `make test-all` runs every reader for some seconds.",
        "",
        f"Run on {kept['on']} with Python {kept['python']}: {minutes:.0f} minutes,",
        f"{executions:,} inputs. Findings: {findings}; not mended: {len(left)}.",
        "",
        "| reader | minutes | inputs | features covered | findings |",
        "|---|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {row['target']} | {row['minutes']:.1f} | {row['executions']:,} | {row['features']:,} "
        f"| {len(row['findings'])} |"
        for row in rows
    ]
    if left:
        lines += ["", "Not mended yet:", "", *(f"- {one}" for one in dict.fromkeys(left))]
    lines += [
        "",
        "Fuzzing has found these mistakes so far. They are mended, and each has a test in",
    ]
    lines += ["`tests/fuzz/test_findings.py`:", "", *(f"- {one}" for one in mended)]
    return "\n".join(lines)


def _list_mended() -> list[str]:
    """List the first sentences of the tests of findings."""
    tree = ast.parse(FINDINGS.read_text(encoding="utf-8"))
    tests = (one for one in tree.body if isinstance(one, ast.FunctionDef))
    return [
        " ".join((ast.get_docstring(one) or "").partition("\n\n")[0].split())
        for one in tests
        if one.name.startswith("test_")
    ]


if __name__ == "__main__":
    main()
