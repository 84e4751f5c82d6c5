"""`_repr_html_`: a fragment that is safe, self-contained and readable without its style."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest

import trialwise as tw
from trialwise.renderers.html.markup import DARK, LIGHT
from trialwise.runtime.comparing import compare

HOSTILE = "</style><script>alert(1)</script><img src=x onerror=alert(2)>\u202egnp"
VOID = {"br", "hr", "img", "input", "link", "meta"}


class Reader(HTMLParser):
    """Elements, attributes and text of a fragment; complains of tags that do not match."""

    def __init__(self, fragment: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []
        self.style = ""
        self._open: list[str] = []
        self.feed(fragment)
        self.close()
        assert [] == self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert tag == self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "style":
            self.style += data
        else:
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def contract(service: Any, *names: str) -> tw.Contract:
    asked = [tw.Criterion(name, tw.contains("555"), at_least=0.9) for name in names or ("answers",)]
    return tw.Contract(HOSTILE, service, asked)


def results() -> dict[str, Any]:
    """One of each kind that a notebook may show."""
    bad = tw.run(contract(lambda _q: HOSTILE), inputs=["q"], trials=30, seed=1, store=None)
    good = tw.run(contract(lambda _q: "555"), inputs=["q"], trials=30, seed=1, store=None)
    each = tw.Contract(
        "each",
        lambda q: "555" if q == "a" else "5",
        [tw.Criterion("answers", tw.contains("555"), at_least=0.5, each_input=True, trials=10)],
    )
    return {
        "fail": bad,
        "pass": good,
        "inputs": tw.run(each, inputs=["a", "b"], seed=1, store=None),
        "suite": tw.SuiteResult({"bad": bad, "good": good}),
        "comparison": compare(
            contract(lambda _q: HOSTILE),
            contract(lambda _q: "555"),
            inputs=["q"],
            trials=20,
            seed=1,
            margin=0.1,
            store=None,
            labels=(HOSTILE, "new"),
        ),
    }


RESULTS = results()


@pytest.mark.parametrize("kind", RESULTS)
def test_nothing_a_service_says_becomes_markup(kind: str) -> None:
    """No script, no event handler, no address, nothing that hides or turns text."""
    fragment = RESULTS[kind]._repr_html_()
    read = Reader(fragment)

    assert not {"script", "img", "iframe", "object", "link", "form"} & set(read.tags)
    assert [] == [name for name, _ in read.attributes if name.startswith("on")]
    assert [] == [name for name, _ in read.attributes if name in ("src", "href", "action")]
    assert "url(" not in fragment
    assert "@import" not in fragment
    assert "\u202e" not in fragment


@pytest.mark.parametrize("kind", RESULTS)
def test_every_rule_is_bound_to_the_fragment(kind: str) -> None:
    """A notebook's own tables keep their look."""
    style = Reader(RESULTS[kind]._repr_html_()).style
    inside = re.sub(r"@media\([^)]*\)\{(.*?\})\}", r"\1", style)
    selectors = [
        one.strip() for rule in re.findall(r"([^{}]+)\{", inside) for one in rule.split(",")
    ]

    assert selectors
    assert [] == [one for one in selectors if ".trialwise-out" not in one]
    assert "trialwise-out" in RESULTS[kind]._repr_html_()[:40]


def test_it_follows_the_notebooks_theme_before_the_systems() -> None:
    """Light and dark by JupyterLab, VS Code and Colab; where none says, as the system is."""
    style = Reader(RESULTS["pass"]._repr_html_()).style

    assert style.index("prefers-color-scheme:dark") < style.index("data-jp-theme-light=true")
    for theme, colours in (("data-jp-theme-light=true", LIGHT), ("vscode-dark", DARK)):
        rule = style[style.index(theme) :]
        assert f"--card:{colours['card']}" in rule[: rule.index("}")]


def test_a_run_says_its_verdict_numbers_and_failures_in_words() -> None:
    """Also where styles are stripped: word, rate, interval, requirement, reason."""
    words = Reader(RESULTS["fail"]._repr_html_()).words

    for part in ("FAIL", "answers", "0.0 %", "90 %", "trials failed", "about this input"):
        assert part in words
    assert "PASS" in Reader(RESULTS["pass"]._repr_html_()).words


def test_inputs_that_did_not_pass_are_named() -> None:
    """Where each is judged on its own, none hides behind the others."""
    words = Reader(RESULTS["inputs"]._repr_html_()).words

    assert "answers [2]" in words
    assert "answers [1]" not in words


def test_a_comparison_says_direction_counts_and_margin_in_words() -> None:
    """Better, 20 of 20 won, the p-value and what was tolerated."""
    words = Reader(RESULTS["comparison"]._repr_html_()).words

    for part in ("PASS", "better", "20/20", "+100.0", "<0.0001", "margin 10 points", "new is"):
        assert part in words


def test_a_suite_has_a_row_for_every_contract() -> None:
    """With the worst on top."""
    words = Reader(RESULTS["suite"]._repr_html_()).words

    assert words.startswith("FAIL suite 1 of 2 contracts failed")
    assert "The criterion failed: answers." in words
    assert "PASS" in words


def test_a_long_run_stays_short_in_a_notebook() -> None:
    """Rows and notes are cut, and what is left out is counted."""
    many = contract(lambda _q: "5", *(f"criterion {k}" for k in range(60)))
    fragment = tw.run(many, inputs=["q"], trials=30, seed=1, store=None)._repr_html_()

    assert len(fragment) < 60_000
    assert "and 20 more rows" in fragment
