"""A new check, service or setting touches one file.

Each test copies the package, adds or changes one file of it, runs `make stubs`, and shows that the
suite, the schema, the reference, the command line, pytest and Python know the new thing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tools import stubs

ROOT = Path(__file__).parents[2]

CHECK = '''
"""A check: the reply reads the same backwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trialwise.checks.check_base import Check
from trialwise.checks.check_base import failed, preview
from trialwise.checks.reply_reading import text_of
from trialwise.declarations.signatures import Natural
from trialwise.model.trial import CheckResult
from trialwise.model.reply import Reply

__all__ = ["Palindrome", "palindrome"]


@dataclass(frozen=True, slots=True)
class Palindrome(Check):
    """The reply reads the same backwards."""

    spelling: ClassVar[str] = "palindrome"

    shortest: int = 1

    @property
    def name(self) -> str:
        """How reports call it."""
        return "palindrome"

    def _examine(self, reply: Reply) -> CheckResult:
        text = text_of(reply)
        if len(text) >= self.shortest and text == text[::-1]:
            return CheckResult.ok()
        return failed("it does not read the same backwards", preview(text))


def palindrome(shortest: Natural = 1) -> Palindrome:
    """The reply reads the same backwards.

    Args:
        shortest: The fewest characters that count.
    """
    return Palindrome(shortest)
'''

SERVICE = '''
"""A service: what is asked, said again."""

from __future__ import annotations

from typing import ClassVar

from trialwise.declarations.signatures import Positive
from trialwise.engine.ports import TrialContext
from trialwise.model.reply import Reply

__all__ = ["EchoService"]


class EchoService:
    """A service that says what it is asked.

    Args:
        prefix: What it says first.
        times: How often it says it.
    """

    spelling: ClassVar[str] = "echo"

    def __init__(self, prefix: str, *, times: Positive = 1) -> None:
        self._prefix, self._times = prefix, times

    async def call(self, trial: TrialContext) -> Reply:
        """Say it."""
        return Reply(value=self._prefix + str(trial.input) * self._times)

    async def aclose(self) -> None:
        """Nothing is open."""
'''

SETTING = """
    patience_s: float | None = setting(Duration(), default=None, key="patience")
"""
SAID = "        concurrency: Number of concurrent trials.\n"

SUITE = """
service: {echo: {prefix: "a", times: 2}}
inputs: [b]
criteria:
  - {name: mirrored, palindrome: {shortest: 3}, at_least: 50%}
trials: 30
seed: 1
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with three changes: two new files and one new field."""
    root = tmp_path_factory.mktemp("tree")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", root / "src", ignore=ignored)
    (root / "docs" / "reference").mkdir(parents=True)
    shutil.copy(ROOT / "docs" / "reference" / "names.md", root / "docs" / "reference")
    package = root / "src" / "trialwise"
    (package / "checks" / "palindromes.py").write_text(CHECK.lstrip())
    (package / "services" / "echo.py").write_text(SERVICE.lstrip())
    options = package / "model" / "options.py"
    before, after = options.read_text().rsplit("    def __post_init__(self)", 1)
    before = before.replace(SAID, f"{SAID}        patience_s: How long to be patient.\n")
    options.write_text(before + SETTING.lstrip("\n") + "\n    def __post_init__(self)" + after)
    stubs.main(root)
    return root


def python(tree: Path, *arguments: str, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(tree / "src"), "NO_COLOR": "1"},
        cwd=cwd or tree,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.slow
def test_a_suite_uses_the_check_and_the_service(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "trialwise.yaml").write_text(SUITE)
    said = python(tree, "-m", "trialwise.cli.main", "run", "--quiet", cwd=tmp_path)
    assert "mirrored" in said
    assert "FAIL" in said, said

    (tmp_path / "trialwise.yaml").write_text(SUITE.replace("inputs: [b]", "inputs: [a]"))
    said = python(tree, "-m", "trialwise.cli.main", "run", "--quiet", cwd=tmp_path)
    assert "PASS" in said, said


@pytest.mark.slow
def test_a_mistake_in_either_has_its_place(tree: Path, tmp_path: Path) -> None:
    wrong = SUITE.replace("shortest: 3", "shorttest: 3").replace("times: 2", "times: 0")
    (tmp_path / "trialwise.yaml").write_text(wrong + "patience: 5\n")
    said = python(tree, "-m", "trialwise.cli.main", "check", cwd=tmp_path)
    assert "unknown key `shorttest`; did you mean `shortest`?" in said
    assert "`times` must be a whole number of at least 1, got `0`" in said
    assert "did you mean 5s?" in said


def test_the_schema_and_the_reference_describe_them(tree: Path) -> None:
    schema = json.loads((tree / "src/trialwise/suite/trialwise.schema.json").read_text())
    definitions = schema["$defs"]
    assert "palindrome" in definitions["criterion"]["properties"]
    assert definitions["service"]["properties"]["echo"]["description"] == (
        "A service that says what it is asked."
    )
    assert "How long to be patient." == schema["properties"]["patience"]["description"]
    page = (tree / "docs/reference/suite.md").read_text()
    assert "- **`palindrome`** (count from 0; `shortest`): The reply reads the same" in page
    assert "- **`times`** (count; default: 1): How often it says it." in page
    assert "- **`patience`** (time): How long to be patient." in page
    assert (
        ".. autofunction:: trialwise.palindrome\n" in (tree / "docs/reference/names.md").read_text()
    )


def test_the_exports_and_the_stubs_name_them(tree: Path) -> None:
    code = (
        "import trialwise as tw, trialwise.checks as c, trialwise.services as s;"
        "print(tw.palindrome(2).name, c.Palindrome.spelling, s.EchoService.spelling)"
    )
    assert "palindrome palindrome echo\n" == python(tree, "-c", code)
    stub = (tree / "src/trialwise/__init__.pyi").read_text()
    assert "from trialwise.checks import palindrome as palindrome" in stub
    services = (tree / "src/trialwise/services/__init__.pyi").read_text()
    assert "from trialwise.services.echo import EchoService as EchoService" in services


def test_the_setting_is_an_option_an_argument_and_a_key(tree: Path, tmp_path: Path) -> None:
    help_page = python(tree, "-m", "trialwise.cli.main", "run", "--help-all")
    assert "\n  patience " in help_page
    assert "How long to be patient." in help_page
    settings = (tree / "src/trialwise/model/run_settings.py").read_text()
    assert "    patience_s: float | None\n" in settings
    (tmp_path / "trialwise.yaml").write_text(SUITE + "patience: 2m\n")
    code = (
        "import os; from pathlib import Path; from trialwise.suite import load_suite;"
        "print(load_suite(Path('trialwise.yaml'), environment={}).contracts[0].options.patience_s)"
    )
    assert "120.0\n" == python(tree, "-c", code, cwd=tmp_path)


@pytest.mark.slow
def test_pytest_knows_the_setting(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.trials(20, never_fails=True, patience='3s')\n"
        "def test_it(): pass\n"
    )
    said = python(
        tree,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--trialwise-patience=1s",
        "--trialwise-plan",
        str(tmp_path / "test_it.py"),
        cwd=tmp_path,
    )
    assert "20 trials" in said, said
