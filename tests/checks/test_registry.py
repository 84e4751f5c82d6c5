"""What suite files may write, what they may not, and what every check has in common."""

from __future__ import annotations

import ast
import importlib
import json
import pickle
import pkgutil
import subprocess
import sys
from inspect import isfunction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise import checks
from trialwise.checks.check_base import Check
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply, Usage
from trialwise.model.trial import Postcondition

SPECS: list[tuple[dict[str, Any], Postcondition, str]] = [
    ({"equals": "555"}, checks.equals("555"), "equals '555'"),
    ({"equals": 555}, checks.equals(555), "equals 555"),
    ({"equals": None}, checks.equals(None), "equals null"),
    ({"equals": [1, 2]}, checks.equals([1, 2]), "equals [1, 2]"),
    ({"equals": {"a": 1}}, checks.equals({"a": 1}), 'equals {"a": 1}'),
    (
        {"equals": {"expected": {"expected": 1}}},
        checks.equals({"expected": 1}),
        'equals {"expected": 1}',
    ),
    ({"equals": {"expected": "a", "trim": True}}, checks.equals("a", trim=True), "equals 'a'"),
    ({"contains": "555"}, checks.contains("555"), "contains '555'"),
    ({"contains": ["a", "b"]}, checks.contains(["a", "b"]), "contains 'a' and 'b'"),
    (
        {"contains": {"text": "a", "min": 2, "max": 3}},
        checks.contains("a", minimum=2, maximum=3),
        "contains 'a' 2 to 3 times",
    ),
    ({"not_contains": "x"}, checks.not_contains("x"), "does not contain 'x'"),
    ({"starts_with": "x"}, checks.starts_with("x"), "starts with 'x'"),
    (
        {"ends_with": {"text": "x", "ignore_case": True}},
        checks.ends_with("x", ignore_case=True),
        "ends with 'x'",
    ),
    ({"as_expected": "equals"}, checks.as_expected(), "equals what is expected"),
    (
        {"as_expected": {"how": "contains", "ignore_case": True}},
        checks.as_expected("contains", ignore_case=True),
        "contains what is expected",
    ),
    ({"matches": "^a"}, checks.matches("^a"), "matches '^a'"),
    ({"length": {"max": 9}}, checks.length(maximum=9), "length at most 9"),
    ({"parses": "json"}, checks.parses("json"), "parses as JSON"),
    ({"parses": "yaml"}, checks.parses("yaml"), "parses as YAML"),
    ({"parses": "xml"}, checks.parses("xml"), "parses as XML"),
    ({"parses": "number"}, checks.parses("number"), "parses as number"),
    (
        {"json_schema": {"type": "object"}},
        checks.json_schema({"type": "object"}),
        "valid under JSON Schema",
    ),
    (
        {"json_schema": {"title": "T"}},
        checks.json_schema({"title": "T"}),
        "valid under JSON Schema 'T'",
    ),
    ({"json_schema": True}, checks.json_schema(True), "valid under JSON Schema"),
    ({"json_path": "$.a"}, checks.json_path("$.a"), "$.a exists"),
    (
        {"json_path": {"path": "$.a", "equals": None}},
        checks.json_path("$.a", equals=None),
        "$.a equals null",
    ),
    (
        {"json_path": {"path": "$..a", "contains": "x", "require": "any"}},
        checks.json_path("$..a", contains="x", require="any"),
        "some $..a contains 'x'",
    ),
    (
        {"json_path": {"path": "$.a", "between": [1, 2]}},
        checks.json_path("$.a", minimum=1, maximum=2),
        "$.a 1 to 2",
    ),
    (
        {"numeric_range": {"min": 0, "max": 1}},
        checks.numeric_range(minimum=0, maximum=1),
        "number 0 to 1",
    ),
    (
        {"numeric_range": {"min": 0, "path": "$.a"}},
        checks.numeric_range(minimum=0, path="$.a"),
        "$.a at least 0",
    ),
    ({"expression": "latency_s < 5"}, checks.expression("latency_s < 5"), "latency_s < 5"),
    ({"tool_called": "search"}, checks.tool_called("search"), "calls 'search'"),
    (
        {"tool_called": {"name": "s", "max": 2}},
        checks.tool_called("s", maximum=2),
        "calls 's' 1 to 2 times",
    ),
    ({"tool_not_called": "pay"}, checks.tool_not_called("pay"), "does not call 'pay'"),
    (
        {"tool_called_with": {"tool": "b", "args": {"n": 2}}},
        checks.tool_called_with("b", {"n": 2}),
        "calls 'b' with {\"n\": 2}",
    ),
    (
        {"tool_called_with": {"tool": "b", "schema": True}},
        checks.tool_called_with("b", schema=True),
        "calls 'b' with arguments of a schema",
    ),
    ({"tools_in_order": ["a", "b"]}, checks.tools_in_order(["a", "b"]), "calls 'a', then 'b'"),
    (
        {"tools_in_order": {"tools": ["a"], "exact": True}},
        checks.tools_in_order(["a"], exact=True),
        "calls exactly 'a'",
    ),
    ({"tool_call_count": {"max": 3}}, checks.tool_call_count(maximum=3), "calls at most 3 tools"),
    (
        {"tool_called_with": {"tool": "b", "expression": "value.n == 2", "require": "all"}},
        checks.tool_called_with("b", expression="value.n == 2", require="all"),
        "always calls 'b' with value.n == 2",
    ),
    ({"final_answer": {}}, checks.final_answer(), "comes to an answer"),
    (
        {"final_answer": {"contains": "a", "ignore_case": True}},
        checks.final_answer(contains="a", ignore_case=True),
        "final answer contains 'a'",
    ),
    (
        {"final_answer": {"equals": "a", "contains": ["b", "c"], "matches": "^d"}},
        checks.final_answer(equals="a", contains=["b", "c"], matches="^d"),
        "final answer equals 'a' and contains 'b' and 'c' and matches '^d'",
    ),
    ({"max_turns": 5}, checks.max_turns(5), "at most 5 turns"),
    ({"max_repeated_failures": 0}, checks.max_repeated_failures(0), "repeats no failing call"),
    ({"exit_code": 0}, checks.exit_code(0), "exit code 0"),
    ({"exit_code": [0, 1]}, checks.exit_code([0, 1]), "exit code 0 or 1"),
    ({"max_tokens": 100}, checks.max_tokens(100), "at most 100 tokens"),
    ({"max_cost": 0.02}, checks.max_cost(0.02), "costs at most $0.02"),
    ({"max_latency": 1.5}, checks.max_latency(1.5), "takes at most 1.5 s"),
    (
        {"all_of": [{"contains": "a"}, {"length": {"min": 1}}]},
        checks.all_of(checks.contains("a"), checks.length(minimum=1)),
        "contains 'a' and length at least 1",
    ),
    ({"any_of": [{"contains": "a"}]}, checks.any_of(checks.contains("a")), "contains 'a'"),
    ({"not": {"contains": "a"}}, checks.not_(checks.contains("a")), "not (contains 'a')"),
    (
        {"named": {"name": "n", "check": {"contains": "a"}}},
        checks.named("n", checks.contains("a")),
        "n",
    ),
]


@pytest.mark.parametrize(("spec", "check", "name"), SPECS, ids=lambda part: str(part)[:40])
def test_a_spelling_is_the_check_and_back(
    spec: dict[str, Any], check: Postcondition, name: str
) -> None:
    """Read, it equals what Python builds; written and read again, it is the same."""
    read = checks.from_spec(spec)

    assert check == read
    assert hash(check) == hash(read)
    assert name == read.name
    written = checks.to_spec(read)
    assert check == checks.from_spec(json.loads(json.dumps(written)))
    assert isinstance(read, Postcondition)
    assert check == pickle.loads(pickle.dumps(read))


@pytest.mark.parametrize(
    "spec",
    [
        {"contains": "555"},
        {"parses": "json"},
        {"json_schema": {"type": "object"}},
        {"exit_code": 0},
    ],
)
def test_the_short_form_is_written_where_it_suffices(spec: dict[str, Any]) -> None:
    """What a person would write is what is written."""
    assert spec == checks.to_spec(checks.from_spec(spec))


def test_every_spelling_is_covered_here() -> None:
    """No postcondition is in the table without an example above."""
    # `similar` is built with its model, and has tests of its own.
    covered = {name for spec, _, _ in SPECS for name in spec}
    assert set(checks.spellings()) == {*covered, "similar"}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"contians": "x"}, r"known name \(did you mean 'contains'\?\), got 'contians'"),
        ({"zzz": "x"}, "postcondition must be one of as_expected, contains"),
        ({5: "x"}, "postcondition must be one of"),
        ({}, "postcondition must be an object of one name"),
        ({"contains": "a", "equals": "b"}, "postcondition must be an object of one name"),
        ("contains", "postcondition must be an object of one name"),
        (
            {"contains": {"text": "a", "ignorecase": True}},
            r"contains: argument must be .*did you mean 'ignore_case'",
        ),
        (
            {"contains": {"text": "a", "zzz": True}},
            "contains: argument must be one of text, ignore_case",
        ),
        (
            {"contains": {"ignore_case": True}},
            r"contains must have fitting arguments \(.*missing 1",
        ),
        ({"contains": {"text": "a", "min": 1, "minimum": 2}}, "be given once each"),
        ({"contains": 5}, "contains: text must be text of at least one character, got 5"),
        ({"contains": None}, "contains: text must be text"),
        ({"length": 5}, "length must be an object of minimum, maximum, got 5"),
        ({"matches": "("}, "matches: pattern must be a regular expression"),
        ({"json_schema": {"type": "x"}}, "json_schema: schema must be a JSON Schema"),
        ({"json_path": {"path": "a"}}, "json_path: path must be a JSONPath"),
        ({"expression": "1 +"}, "expression: source must be a CEL expression"),
        ({"python": "os:system"}, "be built in; a Python function is imported by"),
        ({"all_of": []}, "all_of must be a list of at least one postcondition"),
        ({"any_of": {"contains": "a"}}, "any_of must be a list"),
        ({"not": "x"}, "postcondition must be an object of one name"),
        ({"not": {"contians": "x"}}, "did you mean 'contains'"),
        ({"named": {"name": "x"}}, "named must be an object of name and check"),
        ({"named": {"name": 5, "check": {"contains": "a"}}}, "named: name must be text"),
        ({"contains": {"text": "a", "ignore_case": "no"}}, "ignore_case must be true or false"),
        ({"equals": {"expected": "a", "trim": 1}}, "trim must be true or false, got 1"),
        ({"tools_in_order": {"tools": ["a"], "exact": None}}, "exact must be true or false"),
        ({"max_tokens": True}, "max_tokens: tokens must be a whole number"),
        ({"max_cost": "cheap"}, "max_cost: usd must be a finite number"),
        ({"numeric_range": {"min": "a"}}, "numeric_range: minimum must be a finite number"),
        ({"contains": {"text": "a", "min": "b"}}, "contains: minimum must be a whole number"),
    ],
)
def test_a_wrong_spelling_is_refused_with_a_hint(spec: Any, message: str) -> None:
    """The refusal names the postcondition, the argument and what would do."""
    with pytest.raises(InvalidArgument, match=message):
        checks.from_spec(spec)


def test_nesting_without_end_is_refused() -> None:
    """A suite cannot exhaust the stack."""
    spec: dict[str, Any] = {"contains": "a"}
    for _ in range(5000):
        spec = {"not": spec}

    with pytest.raises(InvalidArgument, match="nest at most 50 deep"):
        checks.from_spec(spec)


def test_only_built_in_checks_can_be_written_down() -> None:
    """A user's own postcondition has no spelling, alone or inside another."""

    class Own:
        name = "own"

        def check(self, reply: Reply) -> Any: ...

    with pytest.raises(InvalidArgument, match="be a built-in postcondition to be written down"):
        checks.to_spec(checks.not_(Own()))


# --- what every check has in common ------------------------------------------------------------

ALL = [check for _, check, _ in SPECS]


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__
    __len__ = __eq__ = __hash__ = __iter__ = __bool__ = __str__  # type: ignore[assignment]


class Endless(dict[str, Any]):
    def items(self) -> Any:
        raise OSError("gone")


REPLIES: list[Any] = [
    "",
    "\0",
    "\ud800\udfff",
    "\x1b[2J\r\n\u202e",
    "x" * 300_000,
    "[" * 100_000,
    "{" * 100_000,
    "[" + "1," * 50_000 + "1]",
    '{"a": ' * 500 + "1" + "}" * 500,
    "9" * 10_000,
    10**5000,
    b"\xff",
    None,
    object(),
    Hostile(),
    {"a": Hostile()},
    {Hostile: 1},
    Endless(a=1),
    float("nan"),
    -0.0,
    {1, 2},
    range(10**9),
    type,
]


@pytest.mark.parametrize("check", ALL, ids=lambda check: check.name[:40])
def test_no_reply_makes_a_check_raise(check: Postcondition) -> None:
    """Hostile values give a result whose texts are one short printable line."""
    for value in REPLIES:
        call = {"name": "b", "args": value}
        for details in ({}, {"tool_calls": value, "input": value}, {"tool_calls": [call]}):
            assert_bounded(check.check(Reply(value=value, details=details)))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    VALUES,
    st.dictionaries(st.sampled_from(["tool_calls", "input", "stderr"]), VALUES),
    st.none() | st.integers(-300, 300),
)
def test_any_value_gets_a_bounded_result_from_every_check(
    value: Any, details: dict[str, Any], code: int | None
) -> None:
    """Nothing raises, and the same reply gets the same result twice."""
    reply = Reply(
        value=value, details=details, exit_code=code, usage=Usage(output_tokens=7), cost_usd=0.1
    )
    for check in ALL:
        result = check.check(reply)
        assert_bounded(result)
        assert result == check.check(reply)


def assert_bounded(result: Any) -> None:
    assert len(result.evidence) <= 200
    assert len(result.explanation) <= 300
    assert result.evidence.isprintable()
    assert result.explanation.isprintable()
    assert result.passed is (result.reason is None)
    assert result.passed or result.explanation


@pytest.mark.parametrize("check", ALL, ids=lambda check: check.name[:40])
def test_a_check_is_frozen_and_has_a_line_for_a_name(check: Postcondition) -> None:
    """Values, not objects with a life of their own."""
    assert not hasattr(check, "__dict__")
    assert check.name.isprintable()
    with pytest.raises((AttributeError, TypeError)):
        check.spelling2 = 1  # type: ignore[attr-defined]
    assert isinstance(check, Check)


# --- the package -------------------------------------------------------------------------------

SOURCE = Path(checks.__file__).parent
EXPORTS: dict[str, str] = vars(checks)["_EXPORTS"]
#: What the checks are made with: public for other packages, and not for users.
GROUNDWORK = {*("check_base", "criterion_scopes", "reply_reading", "time_limits")}
#: What a check of one's own is made with, and how checks are spelled.
BASE = {*(("Check", "check_base"), ("Unreadable", "check_base")), ("to_spec", "check_base")}
MODULES = [
    module.name for module in pkgutil.iter_modules([str(SOURCE)]) if module.name not in GROUNDWORK
]


def test_the_package_exports_what_its_modules_declare() -> None:
    """The table, the stub and the modules agree, and no module hides a function."""
    declared = {
        (name, module)
        for module in MODULES
        for name in importlib.import_module(f"trialwise.checks.{module}").__all__
    }
    tree = ast.parse((SOURCE / "__init__.pyi").read_text(encoding="utf-8"))
    stub = {
        (alias.name, (node.module or "").rsplit(".", 1)[-1])
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    assert declared | BASE == set(EXPORTS.items()) == stub
    assert set() == set(EXPORTS) & set(MODULES)


def test_every_public_function_shows_an_example() -> None:
    """A docstring with a doctest for every constructor."""
    functions = [name for name in EXPORTS if isfunction(getattr(checks, name))]

    assert [] == [name for name in functions if ">>>" not in (getattr(checks, name).__doc__ or "")]


def test_a_plain_check_loads_no_library() -> None:
    """Libraries are loaded by the checks that need them, when they are built."""
    code = """
import sys
from trialwise import checks
from trialwise.model.reply import Reply
check = checks.from_spec({"all_of": [{"contains": "a"}, {"tool_called": "x"}, {"max_cost": 1}]})
check.check(Reply(value="a"))
for name in ("jsonschema", "ruamel", "jsonpath_rfc9535", "cel_expr_python", "referencing", "xml"):
    assert name not in sys.modules, name
"""
    subprocess.run([sys.executable, "-I", "-c", code], check=True)
