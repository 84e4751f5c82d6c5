"""Cold start is a feature: what an import may load, by name, never by milliseconds."""

from __future__ import annotations

import json
import subprocess
import sys

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
from trialwise.model.tally import Tally
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
