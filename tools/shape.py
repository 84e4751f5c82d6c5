"""Measures the shape of the code: size, names, private imports and files to touch.

`make shape` prints the table. `tools/shape_limits.toml` has the limits, `tests/repo/test_shape.py`
holds them, and no limit may rise.
"""

from __future__ import annotations

import ast
import io
import re
import statistics
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "trialwise"
README = ROOT / "README.md"
LIMITS = ROOT / "tools" / "shape_limits.toml"

#: Participles that do not end in "ed".
_IRREGULAR = frozenset(
    [
        "begun",
        "bound",
        "broken",
        "brought",
        "built",
        "caught",
        "chosen",
        "cut",
        "done",
        "drawn",
        "fallen",
        "felt",
        "found",
        "given",
        "gone",
        "grown",
        "heard",
        "held",
        "kept",
        "known",
        "laid",
        "left",
        "lent",
        "lost",
        "made",
        "meant",
        "met",
        "paid",
        "said",
        "seen",
        "sent",
        "set",
        "shown",
        "spelt",
        "spent",
        "split",
        "spoken",
        "spread",
        "stood",
        "taken",
        "taught",
        "thought",
        "told",
        "understood",
        "won",
        "written",
    ]
)
#: Words that end in "ed" and are no participles, or are imperatives too.
_PLAIN = frozenset(
    ["bed", "embed", "exceed", "feed", "need", "proceed", "red", "seed", "shed", "speed"]
)

_SCOPES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

#: A built-in of each kind. Files that name it are the files a new one of its kind would touch.
SAMPLES = {
    "check": ("ends_with",),
    "service": ("HttpService",),
    "report format": ("tap", "render_tap"),
    "run setting": ("rate_per_s",),
    "procedure": ("OBSERVATIONAL",),
}
#: Modules that compare, choose, describe or prefer arms, and the packages on their way.
_ARMS = re.compile(
    r"compar|cho(ice|os)|explor|prefer|(^|[/_])arms?(_|\.|$)|pair(ed|ing|_)|relabel|guardrail|amounts\.py"
)
#: What is not part of comparing although its name sounds like it.
_NO_ARMS = re.compile(r"declarations/|journal_repair|chosen_")
#: Types of designs and evidence that only their own modules may tell apart.
_DESIGNS = re.compile(r"\w*(Design|Evidence)\b")
#: Types whose fields a reader has to hold in the head.
_WIDE = ("CriterionPlan", "RunOptions", "Verdict")


@dataclass(frozen=True, slots=True)
class Function:
    """A function or method: where it is, its name and its length in code lines."""

    module: Path
    name: str
    lines: int

    @property
    def words(self) -> list[str]:
        """The words of the name, without leading underscores."""
        return [word for word in self.name.strip("_").split("_") if word]

    @property
    def is_participle(self) -> bool:
        """Whether the name is one bare participle, such as `made` or `_counted`."""
        if len(self.words) != 1:
            return False
        word = self.words[0]
        return word in _IRREGULAR or (word.endswith("ed") and word not in _PLAIN)


class SourceFile:
    """One Python file and what can be counted in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)

    @property
    def package(self) -> str:
        """The first folder below the package, or the module's own name at the top."""
        inside = self.path.relative_to(PACKAGE).parts
        return inside[0] if len(inside) > 1 else Path(inside[0]).stem

    @property
    def is_peripheral(self) -> bool:
        """Whether no verdict needs the file: bridges to other tools, and the toolbox."""
        inside = self.path.relative_to(PACKAGE).parts
        return inside[0] == "contrib" or inside[:2] == ("stats", "toolbox")

    @property
    def is_generated(self) -> bool:
        """Whether `make stubs` writes the file."""
        return "make stubs" in self.text[:600]

    @property
    def lines(self) -> int:
        """All lines."""
        return self.text.count("\n")

    @cached_property
    def _tokens(self) -> list[tokenize.TokenInfo]:
        return list(tokenize.generate_tokens(io.StringIO(self.text).readline))

    @property
    def comments(self) -> int:
        """Lines that are comments or end in one."""
        return sum(token.type == tokenize.COMMENT for token in self._tokens)

    @property
    def code_lines(self) -> int:
        """How many lines are neither blank, nor comments, nor docstrings."""
        return len(self._code)

    @cached_property
    def _code(self) -> set[int]:
        silent = {
            tokenize.COMMENT,
            tokenize.NL,
            tokenize.NEWLINE,
            tokenize.INDENT,
            tokenize.DEDENT,
            tokenize.ENDMARKER,
        }
        lines: set[int] = set()
        for token in self._tokens:
            if token.type not in silent:
                lines.update(range(token.start[0], token.end[0] + 1))
        return lines - self._docstring_lines

    @cached_property
    def _docstring_lines(self) -> set[int]:
        """Lines of every text that stands alone: docstrings, and those below a field."""
        found: set[int] = set()
        for node in ast.walk(self.tree):
            if not isinstance(node, _SCOPES):
                continue
            for one in node.body:
                value = one.value if isinstance(one, ast.Expr) else None
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    found.update(range(one.lineno, (one.end_lineno or one.lineno) + 1))
        return found

    def functions(self) -> Iterator[Function]:
        """Every function and method but the dunders."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if node.name.startswith("__") and node.name.endswith("__"):
                    continue
                inside = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                yield Function(self.path, node.name, len(self._code.intersection(inside)))

    def imports(self) -> Iterator[str]:
        """Every name imported from the package, in full."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("trialwise"):
                for alias in node.names:
                    yield f"{node.module}.{alias.name}"
            elif isinstance(node, ast.Import):
                yield from (a.name for a in node.names if a.name.startswith("trialwise"))

    def private_imports(self) -> Iterator[str]:
        """Imports of a private module or name that belongs to another package."""
        for name in self.imports():
            _, *parts = name.split(".")
            if len(parts) < 2 or parts[0] == self.package:
                continue
            if any(part.startswith("_") and not part.startswith("__") for part in parts):
                yield name

    @property
    def import_lines(self) -> int:
        """Lines that import something, inside functions too."""
        return sum(
            (node.end_lineno or node.lineno) - node.lineno + 1
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
        )

    @property
    def is_about_arms(self) -> bool:
        """Whether the module compares, chooses, describes or prefers arms."""
        inside = self.path.relative_to(PACKAGE).as_posix()
        return bool(_ARMS.search(inside)) and not _NO_ARMS.search(inside)

    def design_checks(self) -> Iterator[str]:
        """Calls of `isinstance` that ask for a type of design or evidence of another module."""
        own = {node.name for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)}
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) != "isinstance":
                continue
            asked = ast.unparse(node.args[1])
            if any(found.group() not in own for found in _DESIGNS.finditer(asked)):
                yield asked

    def wide_types(self) -> Iterator[tuple[str, int]]:
        """Types that many functions take, with the number of their fields."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ClassDef) and node.name in _WIDE:
                yield node.name, sum(isinstance(one, ast.AnnAssign) for one in node.body)

    def names(self, words: tuple[str, ...]) -> bool:
        """Whether the code, and not only a docstring, holds one of the words."""
        wanted = re.compile("|".join(rf"(?<![\w.]){word}(?!\w)" for word in words))
        if not wanted.search(self.text):
            return False
        quiet = self._docstring_lines
        return any(
            wanted.search(token.string)
            for token in self._tokens
            if token.type in (tokenize.NAME, tokenize.STRING) and token.start[0] not in quiet
        )


def count_words() -> int:
    """How many words the documentation has: the pages of the site and the README."""
    pages = [page for page in ROOT.glob("docs/**/*.md") if "_build" not in page.parts]
    return sum(len(page.read_text(encoding="utf-8").split()) for page in [*pages, README])


def count_readme_lines() -> int:
    """How many lines the README has."""
    return len(README.read_text(encoding="utf-8").splitlines())


class Shape:
    """The files of the package and what they add up to."""

    def __init__(self, root: Path = PACKAGE) -> None:
        self.files = [SourceFile(path) for path in sorted(root.rglob("*.py"))]

    @property
    def core(self) -> list[SourceFile]:
        """Everything but the periphery: `contrib`, and the statistics that no verdict uses."""
        return [file for file in self.files if not file.is_peripheral]

    @cached_property
    def functions(self) -> list[Function]:
        """All functions of the package."""
        return [one for file in self.files for one in file.functions()]

    def participles(self) -> list[Function]:
        """Functions named by a bare participle."""
        return [one for one in self.functions if one.is_participle]

    def private_imports(self) -> list[tuple[Path, str]]:
        """Imports across packages that reach for something private."""
        return [(file.path, name) for file in self.files for name in file.private_imports()]

    def contrib_imports(self) -> list[tuple[Path, str]]:
        """Imports of `contrib` from the core."""
        return [
            (file.path, name)
            for file in self.core
            for name in file.imports()
            if name.startswith("trialwise.contrib")
        ]

    def repeated_module_names(self) -> dict[str, int]:
        """Module names that occur more than once, package files aside."""
        counts = Counter(file.path.stem for file in self.files if file.path.stem != "__init__")
        return {name: count for name, count in counts.most_common() if count > 1}

    def code_lines_by_package(self) -> dict[str, int]:
        """Code lines of each package, the largest first."""
        counts: Counter[str] = Counter()
        for file in self.files:
            counts[file.package if file.path.parent != PACKAGE else "."] += file.code_lines
        return dict(counts.most_common())

    @staticmethod
    def count_commands() -> int:
        """Count the commands on the help page of `trialwise`."""
        page = _read_help().partition("\nCommands:\n")[2]
        return len(re.findall(r"^  \w", page, re.MULTILINE))

    @staticmethod
    def count_run_options() -> int:
        """Count the options that the help page of `run` shows, those for help included."""
        return len(re.findall(r"^  -", _read_help("run"), re.MULTILINE))

    def files_naming(self, kind: str) -> list[Path]:
        """Hand-written files of the core that name the sample of a kind."""
        words = SAMPLES[kind]
        return [file.path for file in self.core if file.names(words) and not file.is_generated]

    @cached_property
    def arms(self) -> list[SourceFile]:
        """The modules that compare, choose, describe or prefer arms."""
        return [file for file in self.core if file.is_about_arms]

    def design_checks(self) -> list[tuple[Path, str]]:
        """Where the core asks which design or evidence it has."""
        return [(file.path, asked) for file in self.core for asked in file.design_checks()]

    def figures(self) -> dict[str, float]:
        """Every figure that has a limit, by its key in `shape_limits.toml`."""
        core = sum(file.code_lines for file in self.core)
        lines = sum(file.lines for file in self.core)
        wide = dict(one for file in self.core for one in file.wide_types())
        return {
            "code_lines": core,
            "files": len(self.core),
            "import_percent": round(100 * sum(file.import_lines for file in self.core) / core, 1),
            "comments_per_100_lines": round(
                100 * sum(file.comments for file in self.core) / lines, 1
            ),
            "arms_code_lines": sum(file.code_lines for file in self.arms),
            "arms_files": len(self.arms),
            "arms_packages": len({file.package for file in self.arms}),
            "design_checks": len(self.design_checks()),
            "most_fields": max(wide.values()),
            "longest_file": max(file.lines for file in self.files),
            "public_names": len(trialwise_names()),
            "commands": self.count_commands(),
            "run_options": self.count_run_options(),
            "documentation_words": count_words(),
            "readme_lines": count_readme_lines(),
        }

    def rows(self) -> Iterator[tuple[str, str]]:
        """The table: what is measured, its value, and its limit where it has one."""
        lengths = sorted(one.lines for one in self.functions)
        p95 = lengths[int(0.95 * (len(lengths) - 1))]
        longer = sum(len(one.words) > 1 for one in self.functions) / len(self.functions)
        participles = len(self.participles()) / len(self.functions)
        limits = read_limits()
        for key, value in self.figures().items():
            yield key.replace("_", " "), f"{value:,} (limit {limits[key]:,})"
        yield (
            "function length median / p95 / max",
            f"{statistics.median(lengths):.0f} / {p95} / {lengths[-1]}",
        )
        yield "functions named by a bare participle", f"{100 * participles:.1f} %"
        yield "function names of more than one word", f"{100 * longer:.0f} %"
        for kind in SAMPLES:
            yield f"files of the core that name a {kind}", str(len(self.files_naming(kind)))
        yield "private imports across packages", str(len(self.private_imports()))
        yield "imports of contrib from the core", str(len(self.contrib_imports()))
        yield "module names used more than once", str(len(self.repeated_module_names()))


def read_limits(text: str | None = None) -> dict[str, float]:
    """Read the limits, from the present file or from the text of another version of it."""
    found: dict[str, float] = tomllib.loads(LIMITS.read_text("utf-8") if text is None else text)
    return found


def trialwise_names() -> list[str]:
    """List the public names of the package, as its `__all__` has them."""
    code = "import trialwise; print(*trialwise.__all__)"
    arguments = [sys.executable, "-c", code]
    return subprocess.run(
        arguments, capture_output=True, text=True, check=True, cwd=PACKAGE.parent
    ).stdout.split()


def _read_help(*command: str) -> str:
    """Read a help page as a user would."""
    arguments = [sys.executable, "-m", "trialwise.cli.main", *command, "--help"]
    return subprocess.run(arguments, capture_output=True, text=True, check=True).stdout


def main(arguments: list[str]) -> int:
    """Print the table; with `--details`, also what stands behind the numbers."""
    shape = Shape()
    rows = list(shape.rows())
    width = max(len(label) for label, _ in rows)
    print(f"| {'':{width}} | |\n|{'-' * (width + 2)}|--:|")
    for label, value in rows:
        print(f"| {label:{width}} | {value} |")
    print("\nCode lines by package:")
    for name, count in shape.code_lines_by_package().items():
        print(f"  {name:14} {count:7,}")
    if "--details" in arguments:
        print("\nParticiples:")
        for one in shape.participles():
            print(f"  {one.module.relative_to(PACKAGE)}: {one.name}")
        for kind, words in SAMPLES.items():
            print(f"\nFiles that name a {kind} ({', '.join(words)}):")
            for path in shape.files_naming(kind):
                print(f"  {path.relative_to(PACKAGE)}")
        print("\nQuestions for the type of a design or of evidence:")
        for path, asked in shape.design_checks():
            print(f"  {path.relative_to(PACKAGE)}: {asked}")
        print("\nModules about arms:")
        for file in shape.arms:
            print(f"  {file.code_lines:5} {file.path.relative_to(PACKAGE)}")
        print("\nPrivate imports:")
        for path, name in shape.private_imports():
            print(f"  {path.relative_to(PACKAGE)}: {name}")
        print("\nRepeated module names:")
        for name, count in shape.repeated_module_names().items():
            print(f"  {name} x {count}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
