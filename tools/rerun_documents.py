"""Runs the commands of the documents again and writes what they print now into the pages.

    python -m tools.rerun_documents                      every page with commands
    python -m tools.rerun_documents README.md docs/tutorial.md

The commands run as in `tests/repo/test_documents.py`. Only outputs that no longer match are
rewritten. What the page leaves out with `...` stays left out, and names of runs, dates and
durations stay as they are in lines that did not change otherwise. A command whose exit code the
page does not expect is reported and left alone. Read the difference (`git diff`) before you commit
it: the tool writes what happens, and only you know whether that is what the page should show.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path
from tempfile import TemporaryDirectory

from tools import documents
from tools.documents import Reply

_ELLIPSIS = "..."
#: Costs of the alignment: a line that is new or gone, a line that `...` stands for, and a line that
#: has nothing in common with the old one. The last costs less than the first two together, so that
#: an omission does not swallow a line that changed.
_ADDED = 0.6
_OMITTED = 0.35
_CHANGED = 0.9


def rerun_page(page: str, cache: Path, work: Path) -> list[str]:
    """Rewrite the outputs of a page; what it could not repair, each with its place."""
    text = documents.read(page)
    replies = [
        reply
        for place, session in enumerate(documents.sessions(text))
        for reply in documents.play(session, work / str(place), cache=cache)
    ]
    changed = rewrite_outputs(text, replies)
    if changed != text:
        (documents.ROOT / page).write_text(changed, encoding="utf-8")
        print(f"{page}: rewritten")
    return documents.problems(page, _as_shown(changed, replies))


def rewrite_outputs(text: str, replies: Sequence[Reply]) -> str:
    """The page with today's output below each command."""
    lines = text.split("\n")
    # From the bottom: a rewritten output moves only what is already done.
    for reply in reversed(replies):
        shown = reply.command.expected
        if reply.code is None or documents.matches(shown, reply.output):
            continue
        start = reply.command.line + reply.command.text.count("\n")
        end = start + shown.count("\n")
        blank = len(shown) - len(shown.rstrip("\n")) - 1
        lines[start:end] = [*merge_output(shown, reply.output), *[""] * blank]
    return "\n".join(lines)


def merge_output(shown: str, output: str) -> list[str]:
    """Today's output, abbreviated where the shown one is abbreviated."""
    old = shown.rstrip("\n").split("\n")
    new = [line.rstrip() for line in output.rstrip("\n").split("\n")]
    merged = _abbreviate(old, new)
    return merged if documents.matches("\n".join(merged) + "\n", output) else new


def _abbreviate(old: list[str], new: list[str]) -> list[str]:
    """Align the two outputs by the smallest total cost, and copy the new one line by line."""
    costs = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    steps = [[(0, 0)] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) + 1):
        for j in range(len(new) + 1):
            choices: list[tuple[float, tuple[int, int]]] = []
            omits = i > 0 and old[i - 1].strip() == _ELLIPSIS
            if i and j and not omits:
                choices.append((costs[i - 1][j - 1] + _distance(old[i - 1], new[j - 1]), (1, 1)))
            if j:
                choices.append((costs[i][j - 1] + (_OMITTED if omits else _ADDED), (0, 1)))
            if i:
                choices.append((costs[i - 1][j] + (0 if omits else _ADDED), (1, 0)))
            if choices:
                costs[i][j], steps[i][j] = min(choices)
    return _follow(old, new, steps)


def _follow(old: list[str], new: list[str], steps: list[list[tuple[int, int]]]) -> list[str]:
    """The lines along the cheapest alignment, from its end to its start."""
    found: list[str] = []
    i, j = len(old), len(new)
    while i or j:
        down, right = steps[i][j]
        omits = i > 0 and old[i - 1].strip() == _ELLIPSIS
        if down and right:
            found.append(_choose(old[i - 1], new[j - 1]))
        elif down and omits:
            found.append(old[i - 1])
        elif right and not omits:
            found.append(new[j - 1])
        i, j = i - down, j - right
    return found[::-1]


def _distance(old: str, new: str) -> float:
    if documents.matches(old, new) and bool(old.strip()) == bool(new.strip()):
        return 0.0
    return _CHANGED * (1.0 - SequenceMatcher(None, old, new, autojunk=False).ratio())


def _choose(old: str, new: str) -> str:
    """Keep a line that differs in nothing but what varies or is left out within it."""
    differs = old.split() != new.split()
    return old if differs and old.strip() and documents.matches(old, new) else new


def _as_shown(text: str, replies: Sequence[Reply]) -> list[Reply]:
    """The replies beside the commands of the rewritten page."""
    commands = [one for session in documents.sessions(text) for one in session.commands]
    return [
        Reply(command, reply.output, reply.code)
        for command, reply in zip(commands, replies, strict=True)
    ]


def main(arguments: Sequence[str]) -> int:
    """Refresh the named pages, or all of them; 1 if something is left to repair by hand."""
    named = arguments or documents.pages()
    unknown = sorted({*named} - {*documents.pages()})
    if unknown:
        print(f"no such page: {', '.join(unknown)}; name it as in `docs/tutorial.md`")
        return 2
    found: list[str] = []
    with TemporaryDirectory() as folder:
        for place, page in enumerate(named):
            found += rerun_page(page, Path(folder) / "cache", Path(folder) / str(place))
    print("\n\n".join(found) or "Every command prints what its page shows.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
