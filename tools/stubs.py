"""Writes what is derived from the declarations, so that nobody has to keep it by hand.

`make stubs` writes

- `src/trialwise/catalogue.py`: where each check and each service lives, what is exported, and the
  options of runs,
- the `__init__.pyi` that type checkers read beside each package that loads names on first use,
- the options of runs for pytest,
- the keyword arguments of `tw.run`, in `src/trialwise/model/run_settings.py`,
- the JSON Schema of the suite file, and its reference page,
- the checks on the page of all Python names.

`tests/repo/test_stubs.py` fails where one of them is not current.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
#: Packages whose exports stand in a table of their `__init__.py`, and whose stubs follow from it.
_STUBBED = (
    *("", "checks", "contrib/importers", "judges", "model", "outcomes", "services"),
    *(
        "extend",
        "planning",
        "results",
        "stats",
        "stats/sequential",
        "stats/toolbox",
        "suite",
        "testing",
        "traces",
    ),
)
#: Packages that serve the names of a package inside them as well.
_INCLUDED = {"stats": "toolbox"}
#: Exported beside the modules that declare something.
_ALSO: dict[str, dict[str, list[str]]] = {
    "checks": {"check_base": ["Check", "Unreadable", "to_spec"]},
    "services": {"service_factors": []},
}
_HEAD = '''"""Where each check and service lives, what their packages export, the options of runs.

Written by `make stubs` from the modules themselves: nothing is imported to find a name.
"""

# fmt: off
'''


_ROWS = """
import json
from dataclasses import astuple
from trialwise.model.criterion import Criterion
from trialwise.model.options import Budget, RunOptions
from tools.option_rows import option_rows

rows = [*option_rows(RunOptions), *option_rows(Budget, "budget.")]
rows += [row for row in option_rows(Criterion) if row.name == "confidence"]
print(json.dumps([astuple(row) for row in rows]))
"""
_CHECKS = """#: The module of each check.
CHECKS = dict(
    sorted((name, module) for module, names in _CHECK_MODULES.items() for name in names.split())
)
"""
_OPTIONS_HEAD = """
#: The options of a run in plain values, from the fields of `RunOptions`: `--help` shows them and
#: loads no more. The name of each option, the field that it sets, its kind and what it means.
"""
_SETTINGS_HEAD = '''"""The keyword arguments of `tw.run`: every field of `RunOptions`, typed.

Written by `make stubs` from the fields of `RunOptions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from trialwise.model.claim import Intent
from trialwise.model.options import AbortRule, Budget, Horizon
from trialwise.model.trial import Analysis
from trialwise.stats.multiplicity import FamilyCorrection
from trialwise.stats.result_types import Rule
from trialwise.stats.sequential.concurrency import Draw


class RunSettings(TypedDict, total=False):
    """Every field of `RunOptions`, for callers who would rather not build one."""

'''


def main(root: Path = ROOT) -> None:
    """Write every derived file of a source tree.

    Args:
        root: The folder that holds `src`.
    """
    package = root / "src" / "trialwise"
    _write(package / "model" / "run_settings.py", render_run_settings(package))
    rows = read_option_rows(root)
    _write(package / "catalogue.py", render_catalogue(package) + render_options(rows))
    door = root / "src" / "_trialwise_pytest.py"
    _write(door, render_pytest_options(rows, door.read_text(encoding="utf-8")))
    for path, text in render_stubs(package).items():
        _write(path, text)
    names = root / "docs" / "reference" / "names.md"
    _write(names, render_names(package, names.read_text(encoding="utf-8")))
    # In a fresh interpreter, which sees the catalogue as it is now.
    code = "from trialwise.suite.keys import written_schema; print(written_schema(), end='')"
    _write(package / "suite" / "trialwise.schema.json", _print(root, "-c", code))
    _write(root / "docs" / "reference" / "suite.md", _print(root, "-m", "tools.suite_page"))


def read_option_rows(root: Path = ROOT) -> str:
    """Return the options that the settings of runs declare, as JSON."""
    return _print(root, "-c", _ROWS)


def render_options(rows: str) -> str:
    """Return the table that holds the options of runs, from rows of JSON."""
    lines = "".join(
        f"    ({_quote(name)}, {_quote(target)}, {_quote(kind)}, {_quote(doc)}),\n"
        for name, target, kind, doc, _ in json.loads(rows)
    )
    return f"{_OPTIONS_HEAD}OPTIONS: tuple[tuple[str, str, str, str], ...] = (\n{lines})\n"


def render_pytest_options(rows: str, text: str) -> str:
    """Return the file that pytest reads, with the options that the pytest plugin knows."""
    lines = "".join(
        f"    ({_quote(name)}, {_quote(kind)}, {_quote(doc)}),\n"
        for name, _, kind, doc, in_pytest in json.loads(rows)
        if in_pytest
    )
    table = f"# fmt: off\nSETTINGS: tuple[tuple[str, str, str], ...] = (\n{lines})\n# fmt: on\n"
    return _replace_part(text, table, mark="#")


def render_names(package: Path, text: str) -> str:
    """Return the page of all Python names, with the checks that the package declares."""
    lines: list[str] = []
    for name, path in sorted(_declared(package, "checks", skip=("combine",)).items()):
        module = path.partition(":")[0].replace(".", "/")
        source = (package / f"{module}.py").read_text(encoding="utf-8")
        # Most constructors are their class by another name.
        kind = "function" if f"\ndef {name}(" in source else "class"
        lines.append(f".. auto{kind}:: trialwise.{name}")
    return _replace_part(text, "\n".join(["", "```{eval-rst}", *lines, "```", "", ""]), mark="%")


def _replace_part(text: str, part: str, *, mark: str) -> str:
    """Replace what stands between the two comments that say who wrote it."""
    head, begin, rest = text.partition(f"{mark} Written by `make stubs` from here\n")
    _, end, tail = rest.partition(f"{mark} to here.\n")
    return head + begin + part + end + tail


def render_run_settings(package: Path) -> str:
    """Return the module that types the keyword arguments of a run."""
    tree = ast.parse((package / "model" / "options.py").read_text(encoding="utf-8"))
    wanted = ("TrialOptions", "RunOptions")
    classes = [one for one in tree.body if isinstance(one, ast.ClassDef) and one.name in wanted]
    lines: list[str] = []
    for one in (part for options in classes for part in options.body):
        if isinstance(one, ast.AnnAssign):
            annotation = ast.unparse(one.annotation)
            # A word does as well as the member of an enumeration.
            more = " | str" if annotation in ("Intent", "Analysis") else ""
            lines.append(f"    {ast.unparse(one.target)}: {annotation}{more}\n")
    return _SETTINGS_HEAD + "".join(lines)


def _print(root: Path, *arguments: str) -> str:
    """Run the package of a source tree in a fresh interpreter, which sees what was just written."""
    made = subprocess.run(
        [sys.executable, *arguments],
        env={"PYTHONPATH": str(root / "src"), "PATH": ""},
        capture_output=True,
        check=True,
        text=True,
    )
    return made.stdout


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def render_catalogue(package: Path) -> str:
    """Return the text of the catalogue of a package."""
    checks = {**_declared(package, "checks", skip=("combine",)), **_declared(package, "judges")}
    services = _declared(package, "services")
    tables = {
        "_CHECK_MODULES": _by_module(checks),
        "SERVICES": dict(sorted(services.items())),
        "CHECK_EXPORTS": _exports(package, "checks"),
        "SERVICE_EXPORTS": _exports(package, "services"),
    }
    notes = {
        "_CHECK_MODULES": "The checks that a suite may name; each is named as its constructor is.",
        "SERVICES": "The constructor of each service that a suite may name.",
        "CHECK_EXPORTS": "The public names of `trialwise.checks`, by module.",
        "SERVICE_EXPORTS": "The public names of `trialwise.services`, by module.",
    }
    parts = [_HEAD]
    for name, table in tables.items():
        rows = "".join(f'    "{key}": {_literal(value)},\n' for key, value in table.items())
        parts.append(f"\n#: {notes[name]}\n{name} = {{\n{rows}}}\n")
        if name == "_CHECK_MODULES":
            parts.append(_CHECKS)
    return "".join(parts)


def _by_module(declared: dict[str, str]) -> dict[str, str]:
    """Return the names that each module declares."""
    found: dict[str, list[str]] = {}
    for name, where in sorted(declared.items()):
        found.setdefault(where.partition(":")[0], []).append(name)
    return {module: " ".join(found[module]) for module in sorted(found)}


def render_stubs(package: Path) -> dict[Path, str]:
    """Return the text of each stub by its path."""
    return {_home(package, name).with_suffix(".pyi"): _stub(package, name) for name in _STUBBED}


def _declared(package: Path, name: str, skip: tuple[str, ...] = ()) -> dict[str, str]:
    """Return `package.module:constructor` for everything that a package declares."""
    found: dict[str, str] = {}
    for path in _modules(package / name):
        if path.stem in skip:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
        aliases = {ast.unparse(one.targets[0]) for one in tree.body if isinstance(one, ast.Assign)}
        for spelling, class_name in _spellings(tree):
            function = functions.get(spelling)
            # A constructor of other checks, or of a panel, takes them one by one.
            if spelling in aliases or (function is not None and function.args.vararg is None):
                found[spelling] = f"{name}.{path.stem}:{spelling}"
            elif function is None and name == "services":
                found[spelling] = f"{name}.{path.stem}:{class_name}"
    return found


def _spellings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the `spelling` of each class that has one, with the name of the class."""
    for one in tree.body:
        if not isinstance(one, ast.ClassDef):
            continue
        given = [keyword.value for keyword in one.keywords if keyword.arg == "spelling"]
        given += [
            line.value
            for line in one.body
            if isinstance(line, ast.AnnAssign)
            and isinstance(line.target, ast.Name)
            and line.target.id == "spelling"
            and line.value is not None
        ]
        for value in given:
            if isinstance(value, ast.Constant):
                yield str(value.value), one.name


def _exports(package: Path, name: str) -> dict[str, str]:
    """Return the public names of a package by module: those of modules that declare something."""
    found: dict[str, str] = {}
    for path in _modules(package / name):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        also = _ALSO[name].get(path.stem)
        if also is not None or any(_spellings(tree)):
            found[path.stem] = " ".join(also or _public_names(tree))
    return found


def _public_names(tree: ast.Module) -> list[str]:
    names: list[str] = []
    for one in tree.body:
        if isinstance(one, ast.Assign | ast.AugAssign):
            target = one.target if isinstance(one, ast.AugAssign) else one.targets[0]
            if ast.unparse(target) == "__all__":
                names += [str(name) for name in ast.literal_eval(one.value)]
    return names


def _stub(package: Path, name: str) -> str:
    """Return the stub of a package that loads its names on first use."""
    table = _table(package, name)
    if inner := _INCLUDED.get(name):
        inside = _table(package, f"{name}/{inner}")
        table |= {f"{inner}.{module}": exports for module, exports in inside.items()}
    prefix = f"trialwise.{name}".replace("/", ".") if name else "trialwise"
    pairs = sorted(
        (
            (module if module.startswith("trialwise.") else f"{prefix}.{module}", export)
            for module, exports in table.items()
            for export in exports.split()
        ),
        key=lambda pair: (pair[0], not pair[1].isupper(), pair[1].islower(), pair[1].casefold()),
    )
    lines = [_import(module, export) for module, export in pairs]
    if not name:
        modules = _assigned(package / "__init__.py", "SUBMODULES", {})
        lines = [_import("trialwise", module) for module in modules] + lines
        lines += ["", "__version__: str"]
    return "\n".join([*lines, ""])


def _import(module: str, export: str) -> str:
    line = f"from {module} import {export} as {export}"
    if len(line) <= 100:
        return line
    return f"from {module} import (\n    {export} as {export},\n)"


def _table(package: Path, name: str) -> dict[str, str]:
    """Return the table of exports in an `__init__.py`, with what it takes from the catalogue."""
    known: dict[str, object] = {}
    exec(render_catalogue(package), known)
    table: dict[str, str] = _assigned(_home(package, name), "MODULES", known)
    return table


def _home(package: Path, name: str) -> Path:
    """Return the file with the table of exports of a package, or of a module."""
    return module if (module := package / f"{name}.py").exists() else package / name / "__init__.py"


def _assigned(path: Path, name: str, known: dict[str, object]) -> Any:
    """Return the value that a module assigns to a name, private or not, from what is known."""
    for one in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]).lstrip("_") == name:
            return eval(ast.unparse(one.value), known)
    raise LookupError(f"{path} does not assign {name}")


def _modules(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.py") if not path.stem.startswith("_"))


def _literal(text: str) -> str:
    """Return a text as ruff would format it: over several lines where it is long."""
    if len(text) <= 60:
        return f'"{text}"'
    lines: list[str] = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) > 80:
            lines.append("")
        lines[-1] += f"{word} "
    lines[-1] = lines[-1].rstrip()
    return "(\n" + "".join(f'        "{line}"\n' for line in lines) + "    )"


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"wrote {path}\n")


if __name__ == "__main__":
    main()
