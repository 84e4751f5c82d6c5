"""One word has one meaning: the glossary against documentation, help pages and messages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tools import documents

from trialwise.cli.main import cli
from trialwise.model.verdict import Decision
from trialwise.stats.result_types import RULES

ROOT = Path(__file__).parents[2]
GLOSSARY = "docs/glossary.md"
#: Pages about judges, whose rates are judged; folders of their code.
JUDGES = (
    *("docs/guides/judges.md", "docs/examples.md", "docs/guides/migrate-cerberus.md"),
    *("docs/guides/migrate.md", "judge", "upgrade", "fingerprint"),
)
#: Names in blocks of code and outputs are other people's.
PAGES = [page for page in documents.pages() if page != GLOSSARY]


#: Words with a second meaning, or which a reader has to be taught, and what stands in their place.
NOT_USED = {
    "issue order": "order of inputs",
    "rides along": "shares the trials of other criteria",
    "sentinel": "smoke run, quick check",
    "purse": "budget",
    "gone on with": "resumed",
    "judged": "decided; a judge is a model that grades replies",
    "all run": "all planned trials run",
    "belongs into": "belongs in",
    "so many": "this many, or the number",
    "whoever": "the people who",
    "of one's own": "own",
    "nothing decides": "no verdict",
    "nobody beats": "may be best",
}
#: Habits of other languages, as patterns, and what a reader expects instead.
HABITS = {
    r"(?<!there )(?<!that )\b(is|are) no (?!longer|more|less|worse|fewer|better)": "is not a",
    r"(?<!many )\bany more\b": "no longer",
    r"\bis refused that\b": "is refused if it",
}


@cache
def read_glossary() -> dict[str, str]:
    """The words of the glossary with their meanings."""
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", (ROOT / GLOSSARY).read_text(), re.MULTILINE)
    return {term.strip("*"): meaning for term, meaning in rows if term != "word"}


@cache
def prose() -> str:
    """Everything that the documentation says outside of blocks."""
    texts = (documents.read(page) for page in PAGES)
    return "\n".join(re.sub(r"```.*?```", "", text, flags=re.DOTALL) for text in texts).lower()


def list_help(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """The help page of a command and of those below it."""
    done = CliRunner().invoke(cli, [*words, "--help"])
    yield " ".join(("trialwise", *words)), " ".join(done.output.split())
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from list_help(below, (*words, name))


def list_messages(file: Path) -> Iterator[str]:
    """Every text of a module that may be shown, and no docstring."""
    tree = ast.parse(file.read_text())
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in silent:
            continue
        # A name is no sentence.
        if isinstance(node.value, str) and " " in node.value.strip():
            yield node.value


def is_free(place: str, word: str) -> bool:
    """Whether a place may use a word: judges judge, and their prompt is part of their identity."""
    return place == "judges/votes.py" or (word == "judged" and any(one in place for one in JUDGES))


@pytest.mark.parametrize("term", [one for terms in read_glossary() for one in terms.split(", ")])
def test_every_word_of_the_glossary_is_used(term: str) -> None:
    """A word that nobody uses needs no entry."""
    forms = {term, f"{term}s", re.sub("on$", "a", term), re.sub("y$", "ies", term)}

    assert re.search(rf"\b({'|'.join(map(re.escape, forms))})\b", prose())


def test_what_the_glossary_counts_is_what_the_code_has() -> None:
    """Rule sets and decisions are listed there, and nothing else is one."""
    meanings = read_glossary()
    assert set(RULES) == set(re.findall(r"`(\w+)`", meanings["rule"]))
    assert set(map(str, Decision)) == set(re.findall(r"\b[A-Z]{4,}\b", meanings["decision"]))


@cache
def list_shown() -> list[tuple[str, str]]:
    """Every page outside of blocks, every help page, and every text of the code, with its place."""
    shown = [
        (page, re.sub(r"```.*?```|`[^`]*`", "", documents.read(page), flags=re.DOTALL))
        for page in PAGES
    ]
    shown += list_help(cli)
    source = ROOT / "src" / "trialwise"
    for file in sorted(source.rglob("*.py")):
        shown += [(str(file.relative_to(source)), text) for text in list_messages(file)]
    return shown


@pytest.mark.parametrize("word", NOT_USED)
def test_no_page_message_or_help_uses_a_word_with_two_meanings(word: str) -> None:
    """Documentation outside of blocks, help pages, and texts of the code."""
    pattern = re.compile(rf"\b{re.escape(word)}\b", re.IGNORECASE)

    assert [] == [
        (place, text)
        for place, text in list_shown()
        if pattern.search(text) and not is_free(place, word)
    ]


@pytest.mark.parametrize("habit", HABITS)
def test_sentences_have_the_order_and_the_words_of_plain_english(habit: str) -> None:
    """Readers are busy, and most of them did not grow up with the language."""
    pattern = re.compile(habit, re.IGNORECASE)

    assert [] == [
        (place, text)
        for place, text in list_shown()
        if pattern.search(text) and not is_free(place, habit)
    ]
