"""Cold start is a feature: what an import may load, by name, never by milliseconds."""

from __future__ import annotations

import json
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

HEAVY = {"numpy", "scipy", "statsmodels", "click", "hypothesis"}
SLOW_STANDARD = {"statistics", "fractions", "decimal", "dataclasses", "json", "typing", "inspect"}


def loaded(code: str) -> set[str]:
    """The top-level modules a fresh interpreter has loaded after running `code`."""
    report = "import sys, json; print(json.dumps(sorted(before := set(sys.modules))))"
    bare = subprocess.run(
        [sys.executable, "-I", "-c", report], capture_output=True, text=True, check=True
    )
    after = subprocess.run(
        [sys.executable, "-I", "-c", f"{code}\nimport sys\nprint('\\n'.join(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    names = {name.split(".")[0] for name in after.stdout.split()}
    return names - {name.split(".")[0] for name in json.loads(bare.stdout)}


@pytest.mark.parametrize("package", ["trialwise", "trialwise.stats"])
def test_importing_the_package_loads_nothing(package: str) -> None:
    """Neither heavy libraries nor the slow part of the standard library."""
    assert set() == loaded(f"import {package}") & (HEAVY | SLOW_STANDARD)


def test_a_verdict_from_counts_needs_only_the_standard_library() -> None:
    """Deciding 100 trials in both rule sets imports no numerical library."""
    code = """
from trialwise.model.evidence import Tally
from trialwise.procedures.compliance import decide_compliance
from trialwise.procedures.regression import decide_regression
for rule in ("wilson", "exact"):
    decide_compliance("c", Tally(trials=100, passed=99), 0.9, rule=rule)
    decide_regression("r", Tally(trials=100, passed=91), Tally(trials=1000, passed=951), rule=rule)
"""
    assert set() == loaded(code) & HEAVY


def test_the_help_page_loads_click_and_none_of_the_statistics() -> None:
    """`trialwise --help` imports no command."""
    code = """
import sys
from trialwise.cli.main import cli
cli.main(["--help"], standalone_mode=False)
assert not [name for name in sys.modules if name.startswith("trialwise.stats")], sys.modules
"""
    assert {"click"} == loaded(code) & HEAVY


# --- A run ------------------------------------------------------------------------------------

SUITE = """
service: {python: "agent:answer"}
inputs: [What is 15 * 37?, Capital of Australia?]
criteria:
  - {name: answers, matches: "555|Canberra", at_least: 90%}
"""
AGENT = """
def answer(question):
    return "555" if "15" in question else "Canberra"
"""
#: Libraries and packages that only other suites need.
OTHERS = (
    *("cel*", "http*", "jsonpath*", "jsonschema*", "tempfile", "xml*", "zipfile"),
    *("trialwise.contrib*", "trialwise.renderers.html*", "trialwise.stats.toolbox.*"),
)
SEQUENTIAL = ("trialwise.procedures.sequential",)
EVENT_LOOP = ("anyio*", "asyncio*")


def modules_of(folder: Path, *arguments: str) -> set[str]:
    """Everything that a command has loaded in a folder with a suite of four lines."""
    (folder / "trialwise.yaml").write_text(SUITE)
    (folder / "agent.py").write_text(AGENT)
    code = f"""
import sys
from trialwise.cli.main import cli
assert not cli.main({arguments!r}, standalone_mode=False)
print(*sys.modules, file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, cwd=folder
    )
    return set(done.stderr.split())


def among(modules: set[str], patterns: tuple[str, ...]) -> set[str]:
    return {name for name in modules for one in patterns if fnmatch(name, one)}


def test_a_fixed_run_loads_no_library_that_it_does_not_need(tmp_path: Path) -> None:
    """Nor a report or a search for designs that nobody asked for."""
    modules = modules_of(tmp_path, "run", "--quiet", "--trials", "30")

    assert set() == among(modules, (*OTHERS, *SEQUENTIAL))


def test_a_sequential_run_loads_no_library_that_it_does_not_need(tmp_path: Path) -> None:
    """The design is in the catalogue, so nothing searches for it."""
    modules = modules_of(tmp_path, "run", "--quiet")

    assert set() == among(modules, OTHERS)


def test_a_check_loads_no_event_loop(tmp_path: Path) -> None:
    """Nothing is called, so nothing has to wait."""
    modules = modules_of(tmp_path, "check", "--trials", "30")

    assert set() == among(modules, (*OTHERS, *EVENT_LOOP))
