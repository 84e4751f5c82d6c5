"""Documents that a service sends to keep a parser busy, or to make it fetch something."""

from __future__ import annotations

import socket
import time
import warnings

import pytest

import trialwise as tw

BOMBS = {
    "brackets": "[" * 100_000,
    "braces": "{" * 100_000,
    "dashes": "- " * 50_000,
    "numbers": f"[{'1,' * 40_000}]",
    "lines": "- a\n" * 25_000,
    "keys": "".join(f"k{one}: 1\n" for one in range(9000)),
    "laughs": "a: &a [x,x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)},*{chr(97 + n)}]\n" for n in range(20)
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_a_yaml_bomb_is_refused_within_seconds(text: str) -> None:
    """Processor time, with a wide margin for a busy machine; 0.1.0 took 5 s for some of these."""
    began = time.process_time()
    result = tw.parses("yaml").check(tw.Reply(value=text))

    assert not result.passed
    assert time.process_time() - began < 3


def test_brackets_in_a_text_are_no_nesting() -> None:
    """What only looks deep is read as it is."""
    text = "'" + "[" * 500 + "'"
    assert tw.parses("yaml").check(tw.Reply(value=text)).passed


def test_a_parser_prints_no_warnings() -> None:
    """A warning would quote the reply, secrets included."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tw.parses("yaml").check(tw.Reply(value=f"[{'&a sk-secret, *a,' * 50}]"))
    assert caught == []


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every connection is an error."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a parser opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.usefixtures("no_network")
def test_a_schema_that_refers_elsewhere_is_refused() -> None:
    """Nothing is fetched: neither when the check is built nor when it is used."""
    with pytest.raises(tw.InvalidArgument, match="cannot resolve"):
        tw.json_schema({"$ref": "http://example.invalid/schema.json"})


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    "declaration",
    [
        '<!ENTITY x SYSTEM "file:///etc/passwd">',
        '<!ENTITY x SYSTEM "http://example.invalid/">',
        '<!ENTITY x "xxxxxxxx">',
    ],
)
def test_xml_with_entities_of_its_own_is_refused(declaration: str) -> None:
    """Entities are how a small document grows, or names a file."""
    text = f"<!DOCTYPE r [{declaration}]><r>&x;</r>"
    assert not tw.parses("xml").check(tw.Reply(value=text)).passed
