"""JavaScript's regular expressions find the same texts in Python's syntax."""

from __future__ import annotations

import json
import shutil
import subprocess
from random import Random

import pytest

from trialwise.checks.texts import matches
from trialwise.contrib.importers.cerberus.assertion_patterns import translate_pattern
from trialwise.contrib.importers.cerberus.assertion_syntax import NotCarried
from trialwise.model.reply import Reply

NODE = shutil.which("node")
ORACLE = """
import { createInterface } from "node:readline";
for await (const line of createInterface({ input: process.stdin })) {
  const [source, flags, text] = JSON.parse(line);
  let found;
  try { found = new RegExp(source, flags).test(text); } catch { found = "invalid"; }
  console.log(found);
}
"""
PIECES = [
    *("a", "b", "K", "k", "s", "1", " ", "-", "#", "&", "~", "'", '"', "é", ",", "="),
    *(r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\b", r"\B", ".", "^", "$", r"\.", r"\/"),
    *("[ab]", "[^a]", "[a-c]", "[A-z]", r"[\s]", r"[\d-]", r"[^\w]", "[]", "[^]", "[[a]", r"[\b]"),
    *("{", "}", "]", "(?:a|b)", "(a)", r"\x41", r"\u0041", r"\t", r"\n", "[&&]", "[.$^]"),
    *("[- a]", r"[^-\n]", r"[\t\r]", "(?=a)", "(?!b)", "(?=.*k)", "—", "[é—]", r"[\s\S]"),
]
REPEATS = ["*", "+", "?", "{2}", "{1,2}", "{0,}", "*?", "+?", "??", "{,2}"]
CHARACTERS = "—abkK sS1\n\r\t.-_{}[]é\u2028\u00a0\ufeff\x0b\x08/,#&~'\"=ſ\u212a"


def found(source: str, flags: str, text: str) -> bool:
    """Whether our translation of a pattern is found in a text."""
    return matches(translate_pattern(source, flags, 0)).check(Reply(value=text)).passed


@pytest.mark.parametrize(
    ("source", "flags", "texts"),
    [
        ("^ok$", "", {"ok": True, "ok\n": False, "a\nok": False}),
        ("a.c", "", {"abc": True, "a\nc": False, "a\u2028c": False}),
        (r"\s", "", {"\u00a0": True, "\ufeff": True, "\x0b": True, "\x1c": False, "x": False}),
        # Under the flag i JavaScript takes no long s for an s, and no Kelvin sign for a k.
        ("[s-u]k", "i", {"SK": True, "ſk": False, "s\u212a": False}),
        ("[ab\\s]+$", "", {"x\u00a0": True, "a\x1c": False}),
        (r"\w+", "", {"é": False, "e": True}),
    ],
)
def test_what_the_two_languages_read_differently_is_spelled_out(
    source: str, flags: str, texts: dict[str, bool]
) -> None:
    """Line ends, white space, the dot and letters of either case, by JavaScript's rules."""
    assert texts == {text: found(source, flags, text) for text in texts}


@pytest.mark.parametrize(
    ("source", "flags", "reason"),
    [
        ("(?<!a)", "", "'(?<!a)'"),
        ("(?<n>a)", "", "'(?<n>a)'"),
        (r"(a)\1", "", r"\1"),
        (r"\p{L}", "u", "flags 'u'"),
        (r"\p{L}", "", r"\p{L}"),
        ("a{2000}", "", "'{2000}'"),
        ("a{,2}", "", "'{,2}'"),
        ("é", "i", "'é'"),
        ("\U0001f600", "", "is not carried over"),
        ("[é]", "i", "'[é]'"),
        (r"[a\S]", "", r"\S]"),
        ("a", "ii", "flags 'ii'"),
        ("[^]", "", "'[^]'"),
        ("[a&&b]", "", "'[a&&b]'"),
        ("a", "y", "flags 'y'"),
        ("*a", "", "nothing to repeat"),
        ("a**", "", "multiple repeat"),
        ("(a", "", "unterminated"),
        ("a)", "", "unbalanced"),
        ("[a", "", "'[a'"),
        ("[b-a]", "", "bad character range"),
        ("\\", "", "is not carried over"),
    ],
)
def test_what_the_two_languages_do_not_share_is_refused(
    source: str, flags: str, reason: str
) -> None:
    """With the part that is meant."""
    with pytest.raises(NotCarried) as caught:
        translate_pattern(source, flags, 7)

    assert reason in caught.value.reason
    assert 7 == caught.value.at


@pytest.mark.slow("0")
@pytest.mark.skipif(NODE is None, reason="there is no node to ask")
@pytest.mark.parametrize("seed", range(2))
def test_random_patterns_are_found_in_the_same_texts(seed: int) -> None:
    """Against JavaScript itself."""
    random = Random(seed)
    asked: list[tuple[str, str, str]] = []
    ours: list[bool] = []
    for _ in range(700):
        source = random_pattern(random)
        flags = "".join(one for one in "ims" if random.random() < 0.2)
        try:
            check = matches(translate_pattern(source, flags, 0))
        except NotCarried:
            continue
        for _ in range(6):
            text = "".join(random.choice(CHARACTERS) for _ in range(random.randrange(6)))
            asked.append((source, flags, text))
            ours.append(check.check(Reply(value=text)).passed)
    assert NODE is not None
    answers = subprocess.run(
        [NODE, "--input-type=module", "--eval", ORACLE],
        input="\n".join(map(json.dumps, asked)),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.split()

    pairs = zip(asked, ours, answers, strict=True)
    assert [] == [(case, one) for case, one, other in pairs if str(one).lower() != other]


def random_pattern(random: Random, depth: int = 0) -> str:
    parts = []
    for _ in range(random.randrange(1, 5)):
        if depth < 2 and random.random() < 0.15:
            part = f"({random_pattern(random, depth + 1)})"
        else:
            part = "|" if random.random() < 0.08 else random.choice(PIECES)
        parts.append(part + (random.choice(REPEATS) if random.random() < 0.25 else ""))
    return "".join(parts)
