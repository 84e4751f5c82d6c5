"""Formats, schemas, paths and numbers, against the libraries and the standards themselves."""

from __future__ import annotations

import json
import time
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise import checks
from trialwise.checks.parsable import Format
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply
from trialwise.model.trial import FailReason, Postcondition

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=15,
)

FORMATS: tuple[Format, ...] = ("json", "yaml", "xml", "number")
LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE z [<!ENTITY a0 "ha">'
    + "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))
    + "]><z>&a11;</z>"
)
ALIASES = "a0: &a0 [x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)
MERGES = "a0: &a0 {k: 1}\n" + "".join(
    f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}], k{i}: 1}}\n" for i in range(1, 40)
)


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ("json", ' {"a": [1, -0.5e3, "\\u00e9", null, true]} '),
        ("json", '"\\ud800"'),
        ("json", {"a": (1, 2)}),
        ("json", "[" * 199 + "]" * 199),
        ("yaml", "a: 1\nb: [x, 'y']"),
        ("yaml", "base: &b {x: 1}\nmore: {<<: *b, y: 2}"),
        ("yaml", "just a sentence"),
        ("xml", "<a><b c='d'/>text &amp; &#233;</a>"),
        ("xml", '<?xml version="1.0" encoding="latin-1"?><a>é</a>'),
        ("xml", "<a>" * 50_000 + "</a>" * 50_000),
        ("number", " -1.5e3\n"),
        ("number", "+.5"),
        ("number", 7),
    ],
)
def test_a_document_of_the_format_parses(form: Format, value: Any) -> None:
    """What the format allows passes."""
    assert checks.parses(form).check(Reply(value=value)).passed


@pytest.mark.parametrize(
    ("form", "text", "explanation"),
    [
        ("json", "{'a': 1}", "not JSON: Expecting property name"),
        ("json", "", "not JSON: Expecting value at line 1 column 1"),
        ("json", "[1,]", "not JSON"),
        ("json", "1 2", "not JSON: Extra data at line 1 column 3"),
        ("json", "[NaN]", "it has no NaN"),
        ("json", "-Infinity", "it has no -Infinity"),
        ("json", "1e999", "'1e999' is too large"),
        ("json", '{"b": 0, "a": 1, "a": 1}', "'a' is repeated"),
        ("json", "```json\n{}\n```", "it starts with a Markdown code fence"),
        ("json", "\ufeff1", "BOM"),
        ("json", "9" * 5000, "a number of 5000 digits"),
        ("json", "[" * 100_000, "nested at most 200 deep"),
        ("json", "[" * 201 + "]" * 201, "nested at most 200 deep"),
        ("json", '{"a":' * 100_000, "nested at most 200 deep"),
        ("yaml", "a: [", "not YAML: expected the node content"),
        ("yaml", "a: 1\na: 2", "duplicate key"),
        ("yaml", "a: !!python/object:os.system x", "could not determine a constructor"),
        ("yaml", "--- 1\n--- 2", "one YAML document, it holds several"),
        ("yaml", "2001-99-99", "month must be in 1..12"),
        ("yaml", "&a [*a]", "'a' contains itself"),
        ("yaml", "*b", "undefined alias"),
        ("yaml", "a\x01", "special characters"),
        ("yaml", "[" * 20_000, "nested at most 200 deep"),
        ("yaml", "- " * 5_000, "nested at most 200 deep"),
        ("yaml", ALIASES, "10000 values once aliases are followed"),
        ("yaml", MERGES, "10000 values once aliases are followed"),
        ("yaml", "x" * 100_001, "at most 100000 characters long"),
        ("xml", "<a><b></a>", "mismatched tag"),
        ("xml", "", "no element found"),
        ("xml", "<a/><b/>", "junk after document element"),
        ("xml", "<x:a/>", "unbound prefix"),
        ("xml", "<a>&b;</a>", "undefined entity"),
        ("xml", "<a>\ud800</a>", "half a surrogate pair at position 3"),
        ("xml", "<a>\x00</a>", "not well-formed"),
        ("xml", LAUGHS, "it declares 'a0'"),
        ("xml", '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>', "declares 'x'"),
        ("xml", "plain", "syntax error"),
        ("number", "1_000", "not a number"),
        ("number", "١", "not a number"),
        ("number", "1 2", "not a number"),
        ("number", "nan", "not a number"),
        ("number", "inf", "not a number"),
        ("number", "1e999", "too large"),
        ("number", "", "not a number"),
        ("number", "1" * 1001, "at most 1000 characters"),
        ("number", "$5", "not a number"),
    ],
)
def test_anything_else_gives_no_value(form: Format, text: str, explanation: str) -> None:
    """A document that is not of the format, or that is hostile, fails, soon, and says why."""
    before = time.process_time()
    result = checks.parses(form).check(Reply(value=text))

    assert FailReason.TRANSFORM is result.reason
    assert explanation in result.explanation
    assert result.explanation.startswith("the reply is not ")
    assert len(result.evidence) <= 200
    assert time.process_time() - before < 5


@given(JSON)
def test_every_json_value_parses_and_equals_itself(value: Any) -> None:
    """Serialised by the standard library, parsed here, the value is the same."""
    text = Reply(value=json.dumps(value))

    assert checks.parses("json").check(text).passed
    assert isinstance(value, str) or checks.equals(value).check(text).passed
    assert checks.equals(value).check(Reply(value=value)).passed
    assert checks.json_path("$", equals=value).check(text).passed


@given(JSON)
def test_json_is_yaml_where_the_bounds_allow(value: Any) -> None:
    """A YAML reader never raises on JSON, whatever it says."""
    checks.parses("yaml").check(Reply(value=json.dumps(value)))


@given(st.text("-:?[]{},#&*!|>'\"%@`<~ \n\tabt01._eo/=;", max_size=40), st.sampled_from(FORMATS))
def test_anything_that_looks_like_a_document_gets_a_result(text: str, form: Format) -> None:
    """No text of a format's own signs makes its parser raise or warn."""
    result = checks.parses(form).check(Reply(value=text))

    assert result.reason in (None, FailReason.TRANSFORM)
    assert "could not be examined" not in result.explanation


SCHEMAS: list[Any] = [
    True,
    False,
    {"type": "object"},
    {"type": ["integer", "null"]},
    {"type": "array", "items": {"type": "integer"}, "minItems": 1},
    {"prefixItems": [{"type": "integer"}], "items": False},
    {"properties": {"a": {"type": "string"}}, "required": ["a"]},
    {"anyOf": [{"type": "string", "minLength": 2}, {"type": "number", "minimum": 0}]},
    {"additionalProperties": {"$ref": "#/$defs/leaf"}, "$defs": {"leaf": {"type": "null"}}},
    {"unevaluatedProperties": False},
    {"uniqueItems": True},
    {"const": {"a": 1}},
    {"not": {"enum": [1, "a", None]}},
]


@given(st.sampled_from(SCHEMAS), JSON)
def test_a_schema_agrees_with_the_library(schema: Any, value: Any) -> None:
    """Valid here exactly if valid for jsonschema itself."""
    result = checks.json_schema(schema).check(Reply(value=json.dumps(value)))

    assert jsonschema.Draft202012Validator(schema).is_valid(value) is result.passed


def test_a_schema_failure_names_the_most_specific_place() -> None:
    """The path into the reply, and the value there alone."""
    schema = {
        "anyOf": [
            {"properties": {"a": {"properties": {"b": {"type": "string"}}}}},
            {"type": "string"},
        ]
    }
    result = checks.json_schema(schema).check(Reply(value='{"a": {"b": 1}, "c": "long"}'))

    assert ("$.a.b: 1 is not of type 'string'", "1") == (result.explanation, result.evidence)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "strin"}, r"schema must be a JSON Schema \(\$\.type: 'strin' is not valid"),
        ({"properties": {"a": {"pattern": "("}}}, r"\$\.properties\.a\.pattern: '\(' is not"),
        ({"$ref": "#/$defs/no"}, "cannot resolve '#/\\$defs/no'"),
        ({"items": {"$ref": "http://example.com/s"}}, "cannot resolve 'http://example.com/s'"),
        ({"$ref": "#"}, "not refer to itself without end"),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#"},
            "be https://json-schema.org/draft/2020",
        ),
        ({"$schema": 5}, "schema must"),
        ([], "schema must be a JSON Schema"),
        (None, "schema must be a JSON Schema"),
        ({"const": {1: 2}}, "a key of type int"),
    ],
)
def test_a_schema_that_does_not_hold_together_is_refused(schema: Any, message: str) -> None:
    """Before the first trial, with the place; nothing is fetched."""
    with pytest.raises(InvalidArgument, match=message):
        checks.json_schema(schema)


def test_a_schema_may_mention_references_in_values_and_use_the_draft_itself() -> None:
    """A `$ref` inside a constant is data, and the draft's own schema is at hand."""
    assert (
        checks.json_schema({"const": {"$ref": "#/no"}}).check(Reply(value={"$ref": "#/no"})).passed
    )
    schema = {"$ref": "https://json-schema.org/draft/2020-12/schema"}
    assert checks.json_schema(schema).check(Reply(value='{"type": "object"}')).passed
    assert not checks.json_schema(schema).check(Reply(value='{"type": 5}')).passed


def test_a_large_value_does_not_hide_what_is_wrong_with_it() -> None:
    """The message is about the schema when the value would fill it."""
    result = checks.json_schema({"type": "string"}).check(Reply(value=json.dumps([1] * 500)))

    assert "$: does not meet 'type': \"string\"" == result.explanation


def test_unique_items_take_linear_time() -> None:
    """As many objects as the library would compare for minutes."""
    items = [{"a": [index, True]} for index in range(20_000)]
    check = checks.json_schema({"uniqueItems": True})

    assert check.check(Reply(value=items)).passed
    result = check.check(Reply(value=[*items, {"a": [7.0, True]}]))
    assert '$: item 20000 is a repetition of {"a": [7.0, true]}' == result.explanation


@given(st.lists(st.sampled_from([0, 1, True, False, 1.0, "1", None, [1], [True], {"a": 1}])))
def test_unique_items_agree_with_the_library(items: list[Any]) -> None:
    """1 is 1.0 and is not true, at any depth."""
    schema = {"uniqueItems": True}

    assert jsonschema.Draft202012Validator(schema).is_valid(items) is (
        checks.json_schema(schema).check(Reply(value=items)).passed
    )


def test_a_schema_is_copied() -> None:
    """Changing the object afterwards does not change the check."""
    schema = {"type": "string"}
    check = checks.json_schema(schema)
    schema["type"] = "integer"

    assert check.check(Reply(value='"x"')).passed
    assert hash(check) == hash(checks.json_schema({"type": "string"}))


#: The example document of RFC 9535, section 1.5.
STORE = {
    "store": {
        "book": [
            {
                "category": "reference",
                "author": "Nigel Rees",
                "title": "Sayings of the Century",
                "price": 8.95,
            },
            {
                "category": "fiction",
                "author": "Evelyn Waugh",
                "title": "Sword of Honour",
                "price": 12.99,
            },
            {
                "category": "fiction",
                "author": "Herman Melville",
                "title": "Moby Dick",
                "isbn": "0-553-21311-3",
                "price": 8.99,
            },
            {
                "category": "fiction",
                "author": "J. R. R. Tolkien",
                "title": "The Lord of the Rings",
                "isbn": "0-395-19395-8",
                "price": 22.99,
            },
        ],
        "bicycle": {"color": "red", "price": 399},
    }
}


@pytest.mark.parametrize(
    ("path", "comparison"),
    [
        ("$.store.book[*].author", {"count": 4}),
        ("$..author", {"count": 4, "matches": "[a-z]"}),
        ("$.store.*", {"count": 2}),
        ("$.store..price", {"count": 5, "minimum": 8.95, "maximum": 399}),
        ("$..book[2].author", {"equals": "Herman Melville"}),
        ("$..book[2].publisher", {"exists": False}),
        ("$..book[-1].title", {"equals": "The Lord of the Rings"}),
        ("$..book[0,1]", {"count": 2}),
        ("$..book[:2]", {"count": 2}),
        ("$..book[?@.isbn].title", {"count": 2, "contains": "i"}),
        ("$..book[?@.price<10].price", {"between": (8, 10)}),
        ("$..*", {"count": 27}),
        ("$.store.bicycle", {}),
        ("$.store.bicycle", {"exists": True, "contains": "color"}),
        ("$..category", {"equals": "fiction", "require": "any"}),
        ("$.store.book", {"contains": STORE["store"]["book"][0]}),  # type: ignore[index]
        ("$.nothing", {"count": 0}),
    ],
)
def test_a_path_selects_as_the_rfc_says(path: str, comparison: dict[str, Any]) -> None:
    """The examples of RFC 9535, table 2, each with a comparison that holds."""
    result = checks.json_path(path, **comparison).check(Reply(value=json.dumps(STORE)))

    assert result.passed, result


@pytest.mark.parametrize(
    ("path", "comparison", "explanation", "evidence"),
    [
        ("$.a", {}, "$.a selects nothing", ""),
        ("$.b", {"exists": False}, "$.b selects 1 values, expected none", "$['b'] = [1, 2, \"x\"]"),
        ("$.b[*]", {"count": 2}, "$.b[*] selects 3 values, expected 2", "$['b'][0] = 1"),
        ("$.b[*]", {"minimum": 0}, "expected a number at least 0", "$['b'][2] = \"x\""),
        ("$.b[0]", {"equals": True}, "expected true", "$['b'][0] = 1"),
        ("$.b[*]", {"equals": 9, "require": "any"}, "none of 3 values equals 9", "$['b'][0] = 1"),
        ("$.b", {"contains": 3}, "expected it to contain 3", "$['b'] = [1, 2, \"x\"]"),
        ("$.b[0]", {"matches": "1"}, "expected text that matches '1'", "$['b'][0] = 1"),
        ("$.b[2]", {"matches": "y"}, "expected a match for 'y'", "$['b'][2] = \"x\""),
        ("$.b[2]", {"contains": 5}, "expected it to contain 5", "$['b'][2] = \"x\""),
        ("$.b[0]", {"contains": 1}, "expected it to contain 1", "$['b'][0] = 1"),
        ("$", {"contains": "x"}, "expected it to contain 'x'", '$ = {"b": [1, 2, "x"]}'),
        ("$", {"contains": 5}, "expected it to contain 5", '$ = {"b": [1, 2, "x"]}'),
        ("$.c", {"equals": None}, "$.c selects nothing", ""),
    ],
)
def test_a_path_failure_shows_one_node(
    path: str, comparison: dict[str, Any], explanation: str, evidence: str
) -> None:
    """The first value that is wrong, with its place, and never the document."""
    result = checks.json_path(path, **comparison).check(Reply(value='{"b": [1, 2, "x"]}'))

    assert (explanation, evidence) == (result.explanation, result.evidence)
    assert FailReason.CONDITION is result.reason


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": "$.a["}, r"a JSONPath \(unbalanced brackets, line 1, column 4\), got"),
        ({"path": "a"}, r"path must be a JSONPath \(expected '\$'"),
        ({"path": ""}, "path must be a JSONPath"),
        ({"path": 5}, "path must be a JSONPath as text, got 5"),
        ({"path": "$[?nope(@)]"}, "function 'nope' is not defined"),
        ({"path": "$", "matches": "("}, "matches must be a regular expression"),
        ({"path": "$", "equals": object()}, "equals must be JSON"),
        ({"path": "$", "count": -1}, "count must be a whole number"),
        ({"path": "$", "exists": True, "count": 1}, "count must not be given beside exists"),
        ({"path": "$", "exists": 1}, "exists must be true or false"),
        ({"path": "$", "exists": False, "equals": 1}, "path must select something to be compared"),
        ({"path": "$", "minimum": 2, "maximum": 1}, "maximum must be at least minimum"),
        ({"path": "$", "between": [1]}, "between must be two numbers"),
        ({"path": "$", "between": 5}, "between must be two numbers"),
        ({"path": "$", "between": [1, 2], "minimum": 1}, "between must not be given beside"),
        ({"path": "$", "require": "most"}, "require must be one of 'all', 'any'"),
    ],
)
def test_a_path_built_wrong_is_refused(arguments: dict[str, Any], message: str) -> None:
    """With the argument, the value and, for a path, the position."""
    with pytest.raises(InvalidArgument, match=message):
        checks.json_path(**arguments)


def test_the_deepest_document_is_searched_to_its_end() -> None:
    """A recursive path reaches every level that the parser lets through."""
    deep = "[" * 199 + "7" + "]" * 199

    assert checks.json_path("$..*", equals=7, require="any").check(Reply(value=deep)).passed


def test_a_path_that_selects_too_much_gives_up() -> None:
    """Paths that multiply stop at a bound, as a transform failure."""
    wide = json.dumps([[0] * 400] * 400)
    result = checks.json_path("$..*").check(Reply(value=wide))

    assert FailReason.TRANSFORM is result.reason
    assert "selects more than 100000 values" in result.explanation


@pytest.mark.parametrize(
    ("value", "expected"), [("0.5", True), (" 1 ", True), (0, True), ("1.01", False), (-0.1, False)]
)
def test_a_number_lies_within_its_limits(value: Any, expected: bool) -> None:
    """Both ends belong to the range."""
    check = checks.numeric_range(minimum=0, maximum=1)

    assert expected is check.check(Reply(value=value)).passed


@pytest.mark.parametrize("value", ["five", "", True, float("nan"), [1], "nan"])
def test_what_is_no_number_is_a_transform_failure(value: Any) -> None:
    """The condition was not evaluated, and the reason says so."""
    result = checks.numeric_range(minimum=0).check(Reply(value=value))

    assert FailReason.TRANSFORM is result.reason


def test_a_range_at_a_path_holds_for_every_value() -> None:
    """Every selected value counts, and one must be there."""
    check = checks.numeric_range(minimum=0, maximum=10, path="$.scores[*]")

    assert check.check(Reply(value={"scores": [0, 10]})).passed
    assert "$['scores'][1] = 11" == check.check(Reply(value={"scores": [0, 11]})).evidence
    assert not check.check(Reply(value={"scores": []})).passed
    assert FailReason.TRANSFORM is check.check(Reply(value="no JSON")).reason
    with pytest.raises(InvalidArgument, match="path must be a JSONPath"):
        checks.numeric_range(minimum=0, path="scores")
    with pytest.raises(InvalidArgument, match="minimum must be a finite number"):
        checks.numeric_range(minimum=float("nan"))


@pytest.mark.parametrize(
    "check",
    [checks.json_schema(True), checks.json_path("$"), checks.equals(1)],
    ids=lambda check: check.name,
)
@pytest.mark.parametrize("value", ["{", {1: 2}, {1, 2}, object(), float("inf"), b"1"])
def test_what_is_no_json_is_a_transform_failure(check: Postcondition, value: Any) -> None:
    """Text that does not parse and objects that JSON cannot hold."""
    assert FailReason.TRANSFORM is check.check(Reply(value=value)).reason


def test_a_value_that_contains_itself_is_a_transform_failure() -> None:
    """A cycle ends at the bound on depth."""
    cycle: list[Any] = []
    cycle.append(cycle)

    result = checks.json_path("$..*").check(Reply(value=cycle))
    assert FailReason.TRANSFORM is result.reason
    assert "nested deeper than 200" in result.explanation


@pytest.mark.parametrize("form", ["json", "yaml", "xml", "number"])
def test_an_object_is_no_document(form: Format) -> None:
    """What no reader takes fails by transform, no reply at all by no-value."""
    assert FailReason.TRANSFORM is checks.parses(form).check(Reply(value=object())).reason
    assert FailReason.NO_VALUE is checks.parses(form).check(Reply(value=None)).reason


def test_an_unknown_format_is_refused() -> None:
    """The refusal lists the formats."""
    with pytest.raises(InvalidArgument, match="format must be one of 'json', 'yaml', 'xml', 'num"):
        checks.parses("toml")  # type: ignore[arg-type]
