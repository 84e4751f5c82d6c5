"""The blocks of a document, and a shell that does what a reader would do with them.

A ```` ```console ```` block is a terminal: what follows `$ ` is typed, what stands below is what
comes back, with `...` for what is left out. Names of runs, dates and times are as good as any
other. The commands of a document run one after another in one folder, `/home/you/agents` to the
reader; a command that does not end with 0 is followed by `echo $?`. Comments steer, and a reader
does not see them:

    <!-- folder: examples/quickstart -->   go on in a fresh copy of that folder; `empty` for none
    <!-- file: agent.py -->                the next block is the content of that file
    <!-- not run: why -->                  the next block is only shown

Python with `>>>` is a doctest. Other Python and YAML is a file, or says why it is not.

`tests/repo/test_documents.py` compares; `tools/rerun_documents.py` rewrites.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
_PART = re.compile(
    r"^```(?P<language>[^\n`]*)\n(?P<text>.*?)^```[ ]*$"
    r"|^<!-- (?P<mark>folder|file|not run): (?P<value>.*?) -->$",
    re.MULTILINE | re.DOTALL,
)
_LOOSELY = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
#: What differs from run to run and from machine to machine.
_VARYING = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ-[\w.@~-]+"), "RUN"),
    (re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:\+00:00)?)?"), "DATE"),
    (re.compile(r"(?<![\w.])[\d.,]+ ?(?:ms|s|min|h)\b"), "TIME"),
)
_TIMEOUT_S = 300


@dataclass(frozen=True)
class Block:
    """A fenced block, and what a comment says of it."""

    language: str
    text: str
    line: int
    mark: str = ""
    value: str = ""


@dataclass(frozen=True)
class Command:
    """A line that is typed, and what should come back; nothing said is nothing asked."""

    text: str
    expected: str
    line: int


@dataclass
class Session:
    """What happens in one folder: files are written and commands typed, in order."""

    folder: str = "empty"
    steps: list[Command | Block] = field(default_factory=list)

    @property
    def commands(self) -> list[Command]:
        """What is typed, without the files between."""
        return [step for step in self.steps if isinstance(step, Command)]


@dataclass(frozen=True)
class Reply:
    """What a command printed, both streams as a terminal shows them, and how it ended."""

    command: Command
    output: str
    code: int | None
    """None: it was never reached."""


def pages() -> list[str]:
    """Every document, by its path in the repository."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
    return [str(page.relative_to(ROOT)) for page in found if "_build" not in page.parts]


def read(page: str) -> str:
    """The text of a document."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a document; a `folder` comment comes as a block without a text."""
    mark, value = "", ""
    for part in _PART.finditer(text):
        line = text.count("\n", 0, part.start()) + 1
        if part["mark"] == "folder":
            yield Block("", "", line, "folder", part["value"])
        elif part["mark"]:
            mark, value = part["mark"], part["value"]
        else:
            yield Block(part["language"].strip(), part["text"], line, mark, value)
            mark, value = "", ""


def sessions(text: str) -> list[Session]:
    """What a reader of a document would do, folder by folder."""
    found = [Session()]
    for block in blocks(text):
        if block.mark == "folder":
            found.append(Session(block.value))
        elif block.mark == "file":
            found[-1].steps.append(block)
        elif block.language == "console" and block.mark != "not run":
            found[-1].steps += _commands(block)
    return [one for one in found if one.commands]


def _commands(block: Block) -> Iterator[Command]:
    typed = list(re.finditer(r"^\$ ((?:.*\\\n)*.*)\n", block.text, re.MULTILINE))
    ends = [one.start() for one in typed[1:]] + [len(block.text)]
    for one, end in zip(typed, ends, strict=True):
        line = block.line + 1 + block.text.count("\n", 0, one.start())
        yield Command(one[1], block.text[one.end() : end], line)


def play(session: Session, folder: Path, *, cache: Path, **environment: str) -> list[Reply]:
    """Do what a session says, in a folder that does not exist yet."""
    is_empty = session.folder == "empty"
    work, log = folder / ("agents" if is_empty else Path(session.folder).name), folder / "log"
    if is_empty:
        work.mkdir(parents=True)
    else:
        made = shutil.ignore_patterns(".trialwise", "__pycache__")
        shutil.copytree(ROOT / session.folder, work, ignore=made)
    log.mkdir()
    subprocess.run(
        ["sh", "-c", _script(session, work, log)],
        cwd=work,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=_TIMEOUT_S,
        env={
            **{name: value for name, value in os.environ.items() if not _is_foreign(name)},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "TRIALWISE_CACHE": str(cache),
            "NO_COLOR": "1",
            "COLUMNS": "80",
            "PYTHONUTF8": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            **environment,
        },
    )
    return [_reply(command, folder, place) for place, command in enumerate(session.commands)]


def _is_foreign(name: str) -> bool:
    """Whether a variable says where the tests run, which no document is about."""
    return name == "CI" or name.startswith(("GITHUB_", "GITLAB_", "CI_", "PYTEST_", "COV_"))


def _script(session: Session, work: Path, log: Path) -> str:
    parts: list[str] = []
    place = 0
    for step in session.steps:
        if isinstance(step, Block):
            file = shlex.quote(str(work / step.value))
            parts.append(f"code=$?\nmkdir -p $(dirname {file})")
            parts.append(f"cat > {file} <<'END-OF-BLOCK'\n{step.text}END-OF-BLOCK\n(exit $code)")
            continue
        out, code = (shlex.quote(str(log / f"{place}.{kind}")) for kind in ("out", "code"))
        # Braces, not parentheses: `cd` and `export` hold for what comes next, and so does `$?`.
        parts.append(f"{{\n{step.text}\n}} > {out} 2>&1\ncode=$?; echo $code > {code}")
        parts.append("(exit $code)")
        place += 1
    return "\n".join(parts)


def _reply(command: Command, folder: Path, place: int) -> Reply:
    out, code = (folder / "log" / f"{place}.{kind}" for kind in ("out", "code"))
    text = out.read_text(encoding="utf-8", errors="replace") if out.exists() else ""
    text = text.replace(str(folder), "/home/you")
    return Reply(command, text, int(code.read_text()) if code.exists() else None)


def problems(page: str, replies: list[Reply]) -> list[str]:
    """What is not as the document says, each with its place."""
    found = []
    for reply, later in zip(replies, [*replies[1:], None], strict=False):
        where = f"{page}:{reply.command.line}: $ {reply.command.text}"
        says_code = later is not None and later.command.text == "echo $?"
        if reply.code != 0 and not says_code:
            found.append(f"{where}\nended with {reply.code} and no `echo $?`:\n{reply.output}")
        if not matches(reply.command.expected, reply.output):
            shown = f"expected:\n{reply.command.expected}\ngot:\n{reply.output}"
            found.append(f"{where}\n{shown}")
    return found


def matches(expected: str, output: str) -> bool:
    """Whether an output is what is shown, but for what varies and for the width of gaps."""
    for pattern, word in _VARYING:
        expected, output = pattern.sub(word, expected), pattern.sub(word, output)
    checker = doctest.OutputChecker()
    return not expected.strip() or checker.check_output(expected, output, _LOOSELY)
