"""Similarity by a model that lies in its package: offline, bounded, and honest about its limits."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from trialwise.errors import InvalidArgument
from trialwise.judges import similar
from trialwise.judges.similarity import cosine
from trialwise.model.reply import Reply
from trialwise.model.trial import FailReason

pytest.importorskip("wordllama")
CAPITAL = "The capital of Australia is Canberra."


def test_the_same_in_other_words_is_similar() -> None:
    """And another topic is not; the failure shows both numbers."""
    check = similar(CAPITAL, minimum=0.8)

    assert check.check(Reply(value="Canberra is Australia's capital city.")).passed
    result = check.check(Reply(value="I like to eat bananas."))
    assert FailReason.CONDITION is result.reason
    assert "expected at least 0.8" in result.explanation
    assert "I like to eat bananas." == result.evidence


def test_one_of_several_is_enough() -> None:
    """The nearest counts."""
    check = similar(["I do not know.", CAPITAL])

    assert check.check(Reply(value=CAPITAL)).passed
    assert check.check(Reply(value="I do not know.")).passed
    assert "similar to 'I do not know.' or others" == check.name


def test_its_limit_is_the_documented_one() -> None:
    """Word order and negation hardly count: it is no judge of truth."""
    assert cosine("Your refund was approved.", "Your refund was not approved.") > 0.9
    assert cosine("dog bites man", "man bites dog") == pytest.approx(1.0, abs=1e-5)


def test_nothing_is_similar_to_nothing() -> None:
    """An empty reply has no direction; no reply has no text."""
    assert 0.0 == cosine("", CAPITAL) == cosine(CAPITAL, " \n")
    assert not similar(CAPITAL).check(Reply(value="")).passed
    assert FailReason.NO_VALUE is similar(CAPITAL).check(Reply(value=None)).reason


@pytest.mark.parametrize("text", ["A" * 200_000, "é\ud800\x00", "🦘" * 5000, "\u202e"])
def test_hostile_texts_are_read(text: str) -> None:
    """Bounded in length; what cannot be encoded is a failure with a reason, never a crash."""
    result = similar(CAPITAL).check(Reply(value=text))

    assert not result.passed


def test_the_model_is_not_downloaded() -> None:
    """In a process that cannot open a connection."""
    code = """
import socket
def refuse(*_, **__):
    raise AssertionError("the network was asked")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from trialwise.judges import similar
from trialwise.model.reply import Reply
assert similar("the same").check(Reply(value="the same")).passed
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )

    assert (0, "") == (done.returncode, done.stderr)


def test_a_cosine_is_symmetric() -> None:
    """And one with itself."""
    assert cosine(CAPITAL, "Sydney") == pytest.approx(cosine("Sydney", CAPITAL))
    assert 1.0 == pytest.approx(cosine(CAPITAL, CAPITAL))


@pytest.mark.parametrize(
    ("text", "options"),
    [("", {}), ([], {}), ([1], {}), ("x", {"minimum": 0}), ("x", {"minimum": 1.0})],
)
def test_bad_arguments_are_refused(text: Any, options: dict[str, Any]) -> None:
    """With the argument's name."""
    with pytest.raises(InvalidArgument):
        similar(text, **options)


def test_a_check_is_spelled_as_a_suite_has_it() -> None:
    """One text or several, the minimum where it is not the usual one."""
    assert {"similar": CAPITAL} == similar(CAPITAL).to_dict()
    assert {"similar": {"text": ["a", "b"], "minimum": 0.5}} == similar(
        ["a", "b"], minimum=0.5
    ).to_dict()


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first trial."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)

    with pytest.raises(InvalidArgument, match=r"pip install 'trialwise\[similarity\]'"):
        similar(CAPITAL)
