"""Where a check is spelled as postconditions, they hold for the same replies as the check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.checks.combine import from_spec
from trialwise.contrib.importers.mavai.check_forms import Check
from trialwise.contrib.importers.mavai.check_spelling import spell_check
from trialwise.contrib.importers.mavai.reply_checks import criterion
from trialwise.declarations.written import Node
from trialwise.model.reply import Reply
from trialwise.suite.suite_problems import Source

VIEWS = {"doc": "json", "page": "xml", "sheet": "yaml"}
NODE = Node(None, Source(Path("contract.yaml"), ""), (0, 0), (0, 0))

WORDS = st.sampled_from(
    [
        *("a", "ab", "b.c", "12", "1.5", "true", "null", "nul", "e", "", " ", "CHF", "[1]"),
        '"a"',
        "é|x",
    ]
)
SCALARS = WORDS | st.sampled_from([0, 1, 12, 1.5, -3, True, False, None])
ELEMENTS = st.lists(SCALARS, min_size=1, max_size=3)
PATHS = st.sampled_from(["$", "$.a", "$.a[*]", "$.a[0]", "$.b.c", "$..a", "$.l[?@ == 'a']"])
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c", "l"]), inner, max_size=3)
    ),
    max_leaves=8,
)
OPERANDS: dict[str, st.SearchStrategy[Any]] = {
    "equals": WORDS,
    "one-of": st.lists(WORDS, min_size=1, max_size=3),
    "contains": WORDS,
    "not-equals": WORDS,
    "is": st.booleans(),
    "is-null": st.just(True),
    "count-equals": st.integers(0, 3),
    "contains-set": ELEMENTS,
}
RAW = ("equals", "one-of", "contains", "not-equals")


def alike(check: Check, reply: str) -> bool:
    """Whether both ways say the same of a reply; True where there is only one."""
    specs = spell_check(check, VIEWS)
    if specs is None:
        return True
    ours = all(from_spec(one).check(Reply(value=reply)).passed for one in specs)
    return ours is criterion([check.spec], views=VIEWS)(Reply(value=reply)).passed


@pytest.mark.parametrize("form", OPERANDS)
@given(st.data())
def test_checks_at_a_path(form: str, data: st.DataObject) -> None:
    """Over any JSON document, and over what is none."""
    check = Check(
        form=form, operand=data.draw(OPERANDS[form]), view="doc", path=data.draw(PATHS), node=NODE
    )
    for _ in range(4):
        reply = data.draw(DOCUMENTS.map(json.dumps) | WORDS)
        assert alike(check, reply), (check.spec, spell_check(check, VIEWS), reply)


@pytest.mark.parametrize("form", RAW)
@given(st.data())
def test_checks_of_the_reply_itself(form: str, data: st.DataObject) -> None:
    """Over any text."""
    check = Check(form=form, operand=data.draw(OPERANDS[form]), view="raw", node=NODE)
    for _ in range(4):
        reply = data.draw(WORDS | st.tuples(WORDS, WORDS).map("".join))
        assert alike(check, reply), (check.spec, reply)


@pytest.mark.parametrize(
    ("form", "operand", "path"),
    [
        ("equals", "12", "$.a"),  # a number 12 equals it, too
        ("contains", "1", "$.a"),
        ("matches", "x", "$.a"),
        ("eq", 5, "$.a"),
        ("equals-ci", "a", None),
        ("equals-set", ["a"], "$.a"),
        ("set-of", {"optional": ["a"]}, "$.a"),
        ("contains-set", ["a", "a"], "$.a"),
    ],
)
def test_what_postconditions_do_not_say_exactly_is_left_to_the_check(
    form: str, operand: Any, path: str | None
) -> None:
    """Decimals, sets, folded texts, and the text of a number."""
    check = Check(form=form, operand=operand, view="doc" if path else "raw", path=path, node=NODE)

    assert spell_check(check, VIEWS) is None


@pytest.mark.parametrize(
    ("view", "reply", "holds"),
    [
        ("doc", '{"a": 1}', True),
        ("doc", "{", False),
        ("page", "<a/>", True),
        ("page", "<a>", False),
    ],
)
def test_parsing_is_spelled_by_its_format(view: str, reply: str, holds: bool) -> None:
    """The view names the format."""
    check = Check(form="parses", operand=view, view="raw", node=NODE)
    specs = spell_check(check, VIEWS)

    assert specs is not None
    assert [holds] == [from_spec(one).check(Reply(value=reply)).passed for one in specs]
    assert alike(check, reply)
