"""An imported suite as text: the same values when it is read, and comments that stay comments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from trialwise.contrib.importers import Imported, render_yaml
from trialwise.suite.suite_problems import Problems, Source
from trialwise.suite.yaml_reading import parse_yaml, plain

TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=15,
)


def read(text: str) -> Any:
    """The values of a YAML text, as the suite's own reader has them."""
    problems = Problems()
    root, _ = parse_yaml(Source(Path("trialwise.yaml"), text), problems, room=10**6)
    problems.check()
    assert root is not None
    return plain(root)


def rendered(suite: dict[str, Any], **given: Any) -> str:
    return render_yaml(Imported(format="mavai", sources=("a/contract.yaml",), suite=suite, **given))


@given(st.dictionaries(TEXTS.filter(lambda key: key != "<<"), VALUES, min_size=1, max_size=5))
@example({"a": ["no", "0o17", "1_000", "2001-01-01", "~", "<<", "=", "- x", "a: b", "#c", " x "]})
@example(
    {"a": "x\n  y\n\n", "b": "\n", "c": "\t\n", "d": "a\rb", "e": "\x85\u2028\ufeff", "f": "é\n"}
)
@example({"a": [1e-7, 1e22, -0.0, 0.1], "b": {"c": [], "d": {}, "e": None}})
def test_what_is_written_is_read_back(suite: dict[str, Any]) -> None:
    """Whatever texts an imported file holds."""
    assert suite == read(rendered(suite))


@given(TEXTS, TEXTS)
def test_notes_and_comments_never_become_part_of_the_suite(note: str, comment: str) -> None:
    """A line break in a name does not end the comment it stands in."""
    suite = {"name": "a", "criteria": [{"name": "b"}, {"name": "c", "at_least": 0.9}]}
    places: Any = {
        (): comment,
        ("name",): comment,
        ("criteria", 0): comment,
        ("criteria", 1, "at_least"): comment,
    }
    text = rendered(suite, notes=(note,), comments=places)

    assert suite == read(text)
    assert text.startswith("# Imported from ")
    assert "$schema" not in text
