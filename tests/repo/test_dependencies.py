"""What an installation brings: only what a first run needs, in ranges that allow for updates."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from trialwise import checks
from trialwise.checks import expressions
from trialwise.errors import InvalidArgument

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {
    name: found
    for name, found in PROJECT["optional-dependencies"].items()
    if name not in ("dev", "docs")
}


def test_versions_are_bounded_ranges_and_no_pins() -> None:
    """What a user installs beside it decides, as long as the interface is the one we know."""
    everything = [*PROJECT["dependencies"], *(one for found in EXTRAS.values() for one in found)]
    unbounded = [one for one in everything if not re.search(r">=[\d.]+,<[\d.]+", one)]

    assert [] == unbounded
    assert not any("==" in one.partition(";")[0] for one in everything)


def test_the_base_leaves_the_expression_library_out() -> None:
    """It takes as much as everything else together; developers have it."""
    assert not any("cel" in one for one in PROJECT["dependencies"])
    assert EXTRAS["cel"][0] in PROJECT["optional-dependencies"]["dev"]


def test_an_expression_without_its_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """In Python, before anything runs."""
    monkeypatch.setitem(sys.modules, "cel_expr_python", None)
    expressions._environment.cache_clear()
    expressions._program.cache_clear()

    with pytest.raises(InvalidArgument, match=r"pip install 'trialwise\[cel\]'"):
        checks.expression("size(output) < 5")


def test_a_suite_with_an_expression_names_the_extra_and_one_without_runs(tmp_path: Path) -> None:
    """The message stands at the line of the suite, and nothing is run."""
    (tmp_path / "cel_expr_python.py").write_text(
        "raise ModuleNotFoundError('none', name='cel_expr_python')"
    )
    (tmp_path / "trialwise.yaml").write_text(
        "name: s\n"
        'service: {command: [echo, "{input}"]}\n'
        "inputs: [ok]\n"
        "criteria:\n"
        "  - {name: short, expression: size(output) < 5, at_least: 50%}\n"
    )

    def run() -> subprocess.CompletedProcess[str]:
        program = (
            f"import sys; sys.path.insert(0, {str(tmp_path)!r});"
            "from trialwise.cli.main import main; main()"
        )
        command = [sys.executable, "-c", program, "check"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    refused = run()
    text = (tmp_path / "trialwise.yaml").read_text()
    (tmp_path / "trialwise.yaml").write_text(
        text.replace("expression: size(output) < 5", "contains: k")
    )
    plain = run()

    assert 2 == refused.returncode
    assert "trialwise.yaml:5:" in refused.stderr
    assert "pip install 'trialwise[cel]'" in refused.stderr
    assert 0 == plain.returncode
