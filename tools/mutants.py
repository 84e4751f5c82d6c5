"""Changes the code at random places and counts how many changes the tests notice.

    python -m tools.mutants --count 200 --seed 7
    python -m tools.mutants --again build/mutants.json

`make mutants` runs the first. Each mutant changes one operator, constant or statement of a module
in a copy of the source. The tests that import the module then run; a mutant that no test notices
has survived. `--again` repeats the survivors of an earlier sample. A survivor that behaves like the
original for every input is listed in `tools/equivalent_mutants.toml`, with the reason, and does not
count.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "mutants"
EQUIVALENT = ROOT / "tools" / "equivalent_mutants.toml"
#: Where a wrong decision, a lost trial or a wrong number can come from.
PACKAGES = ("engine", "stores", "runtime", "procedures", "stats", "checks")
#: A mutant that loops for ever is noticed by this limit.
LONGEST_S = 240
#: A module that many tests import is judged by those that name it in the most places.
MOST_FILES = 10

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
}


@dataclass(frozen=True)
class Mutant:
    """One change: where it is, and how the line reads before and after it."""

    module: str
    line: int
    before: str
    after: str
    source: str
    """The whole line, without its indentation."""
    start: int
    end: int
    """The characters of the module that are replaced."""

    def apply(self, text: str) -> str:
        """Return the module's text with the change."""
        return text[: self.start] + self.after + text[self.end :]


class _Sites(ast.NodeVisitor):
    """Collects the changes that a module offers, without its type hints and docstrings."""

    def __init__(self, module: str, text: str) -> None:
        self.module, self.text = module, text
        self.lines = text.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.found: list[Mutant] = []

    def _offset(self, line: int, column: int) -> int:
        """Turn a position of `ast`, which counts bytes, into one of the text."""
        before = self.lines[line - 1].encode()[:column].decode()
        return self.starts[line - 1] + len(before)

    def _add(self, node: ast.expr | ast.stmt, changed: ast.AST | str) -> None:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._offset(node.lineno, node.col_offset)
        end = self._offset(node.end_lineno, node.end_col_offset)
        after = changed if isinstance(changed, str) else f"({ast.unparse(changed)})"
        before = self.text[start:end]
        source = self.lines[node.lineno - 1].strip()
        self.found.append(Mutant(self.module, node.lineno, before, after, source, start, end))

    def visit_Compare(self, node: ast.Compare) -> None:
        """Swap the first comparison."""
        other = _COMPARISONS.get(type(node.ops[0]))
        if other:
            self._add(node, ast.Compare(node.left, [other(), *node.ops[1:]], node.comparators))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Swap `and` with `or`."""
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._add(node, ast.BoolOp(other, node.values))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Drop `not` and a minus."""
        if isinstance(node.op, ast.Not | ast.USub):
            self._add(node, node.operand)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Swap an operator of arithmetic."""
        other = _ARITHMETIC.get(type(node.op))
        texts = (node.left, node.right)
        is_text = any(
            isinstance(one, ast.JoinedStr | ast.Constant) and _is_text(one) for one in texts
        )
        if other and not is_text:
            self._add(node, ast.BinOp(node.left, other(), node.right))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Swap True with False, and add one to a number."""
        if isinstance(node.value, bool):
            self._add(node, str(not node.value))
        elif isinstance(node.value, int | float):
            self._add(node, repr(node.value + 1))

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """Take the other branch."""
        self._add(node, ast.IfExp(node.test, node.orelse, node.body))
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        """Return nothing."""
        if node.value is not None and not isinstance(node.value, ast.Constant):
            self._add(node, "return None")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        """Leave out a call that is a statement."""
        if isinstance(node.value, ast.Call):
            self._add(node, "pass")
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Visit the value alone."""
        if node.value is not None:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        """Leave out what only a type checker reads."""
        if ast.unparse(node.test) != "TYPE_CHECKING":
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Visit defaults and the body, but neither hints nor decorators, nor a description."""
        if node.name in {"__repr__", "__str__"}:
            return
        for one in (*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body):
            self.visit(one)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815


def _is_text(node: ast.JoinedStr | ast.Constant) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(node.value, str | bytes)


def list_mutants(path: Path) -> list[Mutant]:
    """List every change that a module offers."""
    text = path.read_text(encoding="utf-8")
    sites = _Sites(path.relative_to(ROOT / "src").as_posix(), text)
    sites.visit(ast.parse(text))
    return sites.found


def sample_mutants(packages: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """Draw mutants of some packages, each equally likely; known equivalents are left out."""
    modules = [
        path
        for package in packages
        for path in sorted((ROOT / "src" / "trialwise" / package).rglob("*.py"))
        if "toolbox" not in path.parts
    ]
    known = _read_equivalents()
    found = [
        one
        for path in modules
        for one in list_mutants(path)
        if (one.module, one.source, one.after) not in known
    ]
    return random.Random(seed).sample(found, min(count, len(found)))


def _read_equivalents() -> set[tuple[str, str, str]]:
    if not EQUIVALENT.exists():
        return set()
    rows = tomllib.loads(EQUIVALENT.read_text("utf-8")).get("mutant", [])
    return {(one["module"], one["source"], one["after"]) for one in rows}


@cache
def find_tests(module: str) -> tuple[str, ...]:
    """Find the test files that import a module, the closest first; else those of its package."""
    dotted = module.removesuffix(".py").replace("/", ".")
    package, _, stem = dotted.rpartition(".")
    wanted = re.compile(
        rf"{re.escape(dotted)}\b|from {re.escape(package)} import [^\n]*\b{re.escape(stem)}\b"
    )
    counts: Counter[str] = Counter()
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        hits = len(wanted.findall(path.read_text(encoding="utf-8")))
        close = 100 * (path.stem == f"test_{stem}")
        if hits or close:
            counts[path.relative_to(ROOT).as_posix()] = hits + close
    chosen = [name for name, _ in counts.most_common(MOST_FILES)]
    return tuple(chosen) or (f"tests/{package.split('.')[1]}",)


def judge_mutant(mutant: Mutant, place: Path) -> bool:
    """Return whether a test notices the mutant, in a copy of the source that is its own."""
    path = place / "src" / mutant.module
    original = path.read_text(encoding="utf-8")
    path.write_text(mutant.apply(original), encoding="utf-8")
    try:
        return not _run_tests((*find_tests(mutant.module), str(path)), place)
    finally:
        path.write_text(original, encoding="utf-8")


def _run_tests(names: Sequence[str], place: Path) -> bool:
    """Return whether the tests pass with the source of a copy."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow"]
    command += ["-p", "no:cacheprovider", "-p", "no:xdist", *names]
    # Compiled modules are recognised by size and time: a mutant may change neither.
    settings = {"PYTHONPATH": str(place / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **settings},
            capture_output=True,
            timeout=LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def judge_all(mutants: Sequence[Mutant], workers: int) -> Iterator[tuple[Mutant, bool]]:
    """Judge mutants side by side, each worker in its own copy of the source."""
    shutil.rmtree(BUILD, ignore_errors=True)
    places = [BUILD / str(k) for k in range(workers)]
    for place in places:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "src", place / "src", ignore=ignored)
    free = list(places)

    def judge(mutant: Mutant) -> bool:
        place = free.pop()
        try:
            return judge_mutant(mutant, place)
        finally:
            free.append(place)

    with ThreadPoolExecutor(workers) as pool:
        yield from zip(mutants, pool.map(judge, mutants), strict=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge a sample, print the survivors and the share of mutants that were noticed."""
    parser = argparse.ArgumentParser(description="Count the changes that the tests notice.")
    parser.add_argument("--count", type=int, default=200, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--packages", nargs="+", default=PACKAGES)
    parser.add_argument("--again", type=Path, help="repeat the survivors that a file lists")
    chosen = parser.parse_args(arguments)
    if chosen.again:
        kept = [Mutant(**one) for one in json.loads(chosen.again.read_text("utf-8"))]
        present = [
            one
            for path in {one.module for one in kept}
            for one in list_mutants(ROOT / "src" / path)
        ]
        wanted = {(one.module, one.source, one.after) for one in kept}
        mutants = [one for one in present if (one.module, one.source, one.after) in wanted]
    else:
        mutants = sample_mutants(chosen.packages, chosen.count, chosen.seed)
    survived = []
    for number, (mutant, is_noticed) in enumerate(judge_all(mutants, chosen.workers), start=1):
        if not is_noticed:
            survived.append(mutant)
            print(f"[{number}/{len(mutants)}] survived: {mutant.module}:{mutant.line}", flush=True)
            print(f"    {mutant.before}\n    -> {mutant.after}", flush=True)
    noticed = len(mutants) - len(survived)
    print(
        f"{noticed} of {len(mutants)} mutants were noticed ({100 * noticed / len(mutants):.0f} %)"
    )
    BUILD.parent.mkdir(exist_ok=True)
    listed = json.dumps([asdict(one) for one in survived], indent=1)
    (BUILD.parent / "mutants.json").write_text(listed, encoding="utf-8")
    return 0 if not mutants or noticed / len(mutants) >= 0.9 else 1


if __name__ == "__main__":
    sys.exit(main())
