"""The names of the judges: all there, typed, and paid for only when used."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import trialwise
from trialwise import judges

FOLDER = Path(judges.__file__).parent
EXPORTS: dict[str, str] = vars(judges)["_EXPORTS"]


def stub(folder: Path) -> set[tuple[str, str]]:
    """The names that a package's stub imports, each with its module."""
    return {
        (alias.name, node.module or "")
        for node in ast.parse((folder / "__init__.pyi").read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_type_checkers_see_what_the_interpreter_sees() -> None:
    """Package and stub agree, and every name is its module's."""
    served = {(name, f"trialwise.judges.{module}") for name, module in EXPORTS.items()}

    assert served == stub(FOLDER)
    for name, module in served:
        found = importlib.import_module(module)
        assert getattr(judges, name) is getattr(found, name)


def test_the_front_door_has_the_checks_and_leads_to_the_rest() -> None:
    """What a suite's author needs in Python, by the stub as well."""
    served = {(name, f"trialwise.{module}") for name, module in vars(trialwise)["_EXPORTS"].items()}
    modules = {(name, "trialwise") for name in vars(trialwise)["_SUBMODULES"]}

    assert served | modules == stub(Path(trialwise.__file__).parent)
    assert {"judge", "similar"} == {name for name, module in served if module == "trialwise.judges"}
    assert {"Juror", "calibrate", "read_gold", "pairwise", "win_rate"} <= set(EXPORTS)
    assert trialwise.judges is judges


def test_every_error_is_drawn_in_the_tree() -> None:
    """Whoever looks where errors are listed finds those of the judges."""
    from trialwise import errors

    own = [name for name in EXPORTS if name.endswith("Error") or name == "NothingJudged"]

    assert own
    assert [] == [name for name in own if f"`{name}`" not in (errors.__doc__ or "")]


def test_making_a_judge_loads_neither_an_event_loop_nor_an_http_client() -> None:
    """They are loaded by the first question."""
    code = """
import sys
import trialwise as tw
tw.judge("Be kind.", tw.services.ChatService("http://h/v1", "m", api_key_env=None))
print(sorted({"anyio", "asyncio", "httpx2", "ssl", "wordllama", "numpy"} & set(sys.modules)))
"""
    said = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )

    assert "[]\n" == said.stdout, said.stdout
