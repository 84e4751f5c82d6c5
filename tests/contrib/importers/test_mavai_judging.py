"""The forms of a mavai check, judged as the format describes them."""

from __future__ import annotations

import sys
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest

from trialwise.checks.criterion_scopes import criterion_structure
from trialwise.contrib.importers.mavai.reply_checks import criterion
from trialwise.contrib.importers.mavai.xpath_selection import XPathProblem, parse_xpath
from trialwise.errors import InvalidArgument
from trialwise.model.criterion import Criterion
from trialwise.model.reply import Reply
from trialwise.model.trial import FailReason

JSON = {"doc": "json"}


def passes(check: dict[str, Any], text: str, **given: Any) -> bool:
    return criterion([check], **given)(Reply(value=text)).passed


def at(path: str, **form: Any) -> dict[str, Any]:
    return {"in": "doc", "path": path, **{key.replace("_", "-"): form[key] for key in form}}


@pytest.mark.parametrize(
    ("check", "passing", "failing"),
    [
        # Numbers are compared as decimals, whatever their spelling.
        (at("$.n", eq="2637.80"), ["2637.8", '"2637.800"', "2.6378e3"], ["2637.81", '"x"', "true"]),
        (at("$.n", eq=0.3), ["0.3", '"0.30"'], ["0.30000000000000004", "null"]),
        (at("$.n", ne=0), ["0.1", "-1"], ["0", "0.0", '"0"', '"zero"']),
        (at("$.n", lt="0.2"), ["0.1999", "-5"], ["0.2", "[0.1]"]),
        (at("$.n", le=12), ["12", "12.0"], ["12.01"]),
        (at("$.n", gt=0), ["1e-9"], ["0", "-0"]),
        (at("$.n", ge=5), ["5", '" 5 "'], ["4.999"]),
        # Texts are compared as texts; numbers, true, false and null by their JSON text.
        (at("$.n", equals="12"), ["12", '"12"'], ["12.0", '"12 "', "[12]"]),
        (at("$.n", equals="true"), ["true", '"true"'], ["false", "1"]),
        (at("$.n", equals="null"), ["null"], ["0"]),
        (at("$.n", one_of=["CHF", "EUR"]), ['"CHF"'], ['"USD"', '"chf"', "null"]),
        (at("$.n", contains="2"), ['"a2"', "123"], ['"a"', '{"2": 2}']),
        (at("$.n", matches="^[0-9]+$"), ["12", '"12"'], ["1.5", '"a"']),
        (at("$.n", not_equals="declined"), ['"Declined"', '""'], ['"declined"', "7", "null"]),
        (
            at("$.n", equals_ci="Frau  STRASSE"),
            ['"frau straße"', '"  FRAU\\tStrasse "'],
            ['"fraustrasse"', '"frau strasse."', "7"],
        ),
        # Identity, not projection.
        (at("$.n", **{"is": True}), ["true"], ['"true"', "1", "false", "null"]),
        (at("$.n", is_null=True), ["null"], ['"null"', "0", '""', "[]"]),
    ],
)
def test_scalar_forms(check: dict[str, Any], passing: list[str], failing: list[str]) -> None:
    """Every selected value has to hold, and something has to be selected."""
    for value in passing:
        assert passes(check, f'{{"n": {value}}}', views=JSON), value
    for value in failing:
        assert not passes(check, f'{{"n": {value}}}', views=JSON), value
    every = {**check, "path": "$.n[*]"}
    assert passes(every, f'{{"n": [{passing[0]}, {passing[-1]}]}}', views=JSON)
    assert not passes(every, f'{{"n": [{passing[0]}, {failing[0]}]}}', views=JSON)
    assert ("is-null" in check) is passes(check, "{}", views=JSON)


@pytest.mark.parametrize(
    ("form", "passing", "failing"),
    [
        ({"equals-set": ["a", "a", "b"]}, ['["a", "b", "a"]'], ['["a", "b"]', '["a", "b", "b"]']),
        ({"equals-set": [1200, 950.50]}, ["[950.5, 1200.0]"], ['["1200", 950.5]', "[1200]"]),
        ({"equals-set": [True, None]}, ["[null, true]"], ["[null, 1]", "[]"]),
        ({"contains-set": ["a", "a"]}, ['["a", "b", "a"]'], ['["a", "b"]', "[]"]),
        ({"contains-set": [1]}, ["[2, 1.0]"], ["[true]", '["1"]', "[[1]]"]),
        ({"count-equals": 2}, ["[1, 1]"], ["[1]", "[]"]),
        ({"count-equals": 0}, ["[]"], ["[null]"]),
        (
            {"set-of": {"required": ["r"], "optional": ["x", "y", "x"], "min-present": 1}},
            ['["r", "x"]', '["y", "r", "r", "y", "x"]'],
            ['["r"]', '["x", "y"]', '["r", "x", "z"]', "[]"],
        ),
        (
            {"set-of": {"optional": ["x", "y"], "min-present": "66%", "refuse-extras": False}},
            ['["x"]', '["y", "z"]'],
            ["[]", '["z"]'],
        ),
        ({"set-of": {"optional": ["x"]}}, ["[]", '["x", "x"]'], ['["z"]']),
    ],
)
def test_set_forms(form: dict[str, Any], passing: list[str], failing: list[str]) -> None:
    """They judge everything selected at once; sets have members, multisets count them."""
    check = {"in": "doc", "path": "$.l[*]", **form}
    for value in passing:
        assert passes(check, f'{{"l": {value}}}', views=JSON), value
    for value in failing:
        assert not passes(check, f'{{"l": {value}}}', views=JSON), value


def test_a_percentage_of_members_is_rounded_down() -> None:
    """66 % of two is one, of three still one."""
    two, three = ["x", "y"], ["x", "y", "z"]
    for optional in (two, three):
        check = at("$[*]", set_of={"optional": optional, "min-present": "66%"})
        assert passes(check, '["x"]', views=JSON)
        assert not passes(check, "[]", views=JSON)


@pytest.mark.parametrize(
    ("slack", "failures", "holds"),
    [
        (0, 1, False),
        (1, 1, True),
        (1, 2, False),
        ("40%", 1, True),
        ("40%", 2, False),
        ("0%", 1, False),
    ],
)
def test_slack_is_for_optional_checks_only(slack: int | str, failures: int, holds: bool) -> None:
    """Of three optional checks some may fail; 40 % of three is one."""
    optional = [{"contains": word, "optional": True} for word in "xyz"]
    judge = criterion([{"contains": "!"}, *optional], optional_slack=slack)
    text = "!" + "xyz"[failures:]

    assert holds is judge(Reply(value=text)).passed
    assert not judge(Reply(value=text[1:])).passed


def test_what_cannot_be_read_is_within_no_slack() -> None:
    """An unreadable reply fails outright, with the reason that it could not be read."""
    judge = criterion([{**at("$.a", eq=1), "optional": True}], views=JSON, optional_slack=5)
    result = judge(Reply(value="no json"))

    assert FailReason.TRANSFORM is result.reason
    assert judge(Reply(value='{"a": 2}')).passed


def test_a_percentage_of_slack_counts_what_applies_to_the_input() -> None:
    """Two optional checks for everybody and two for one input: half of four are two."""
    judge = criterion(
        [{"contains": one, "optional": True} for one in "ab"],
        optional_slack="50%",
        expected=[("special", [{"contains": one, "optional": True} for one in "cd"])],
    )

    def holds(given: object, text: str) -> bool:
        return judge(Reply(value=text).with_input(given)).passed

    assert holds("other", "a")
    assert not holds("other", "")
    assert holds("special", "ac")
    assert not holds("special", "a")
    assert FailReason.NO_VALUE is judge(Reply(value="a")).reason


def test_views_are_computed_once_and_functions_may_raise_anything() -> None:
    """A function is a view; what it raises is a reply that cannot be read."""
    calls = []

    def upper(text: str) -> dict[str, str]:
        calls.append(text)
        if text == "bad":
            raise KeyError("x")
        return {"t": text.upper()}

    checks = [{"in": "up", "path": "$.t", "equals": "A"}, {"in": "up", "satisfies": "has-t"}]
    judge = criterion(checks, views={"up": upper}, functions={"has-t": lambda value: "t" in value})

    assert judge(Reply(value="a")).passed
    assert ["a"] == calls
    assert FailReason.TRANSFORM is judge(Reply(value="bad")).reason
    assert FailReason.NO_VALUE is judge(Reply(value=None)).reason
    broken = criterion([{"satisfies": "x"}], functions={"x": lambda value: value.nothing})
    assert "x raised AttributeError" == broken(Reply(value="a")).explanation


def test_documents_of_other_kinds() -> None:
    """XML by XPath, YAML by JSONPath, each refused as text by the other's rules."""
    xml = {"in": "x", "path": "/r/total", "matches": r"^\d+\.\d{2}$"}
    yaml = {"in": "y", "path": "$.currency", "one-of": ["CHF", "EUR"]}

    assert passes(xml, "<r><total>1.50</total></r>", views={"x": "xml"})
    assert not passes(xml, "<r><total>1.5</total></r>", views={"x": "xml"})
    assert not passes(xml, "<r/>", views={"x": "xml"})
    assert not passes(xml, "<!DOCTYPE r [<!ENTITY e 'x'>]><r>&e;</r>", views={"x": "xml"})
    assert passes(yaml, "currency: CHF\n", views={"y": "yaml"})
    assert not passes(yaml, "currency: USD\n", views={"y": "yaml"})
    assert not passes(yaml, "1: CHF\ncurrency: CHF\n", views={"y": "yaml"})
    assert not passes({"parses": "y"}, "a: [", views={"y": "yaml"})
    assert passes({"parses": "y"}, "a: [1]", views={"y": "yaml"})


@pytest.mark.parametrize(
    ("checks", "given"),
    [
        ([{"equals": "a", "contains": "b"}], {}),
        ([{"in": "doc"}], {"views": JSON}),
        ([{"in": "other", "equals": "a"}], {"views": JSON}),
        ([{"satisfies": "nobody"}], {}),
        ([at("$[", eq=1)], {"views": JSON}),
        ([{"path": "$.a", "eq": 1}], {"views": JSON}),
        ([{"equals": "a"}], {"views": {"doc": "toml"}}),
    ],
)
def test_a_wrong_check_is_refused_when_it_is_made(
    checks: list[dict[str, Any]], given: dict[str, Any]
) -> None:
    """Not when the first reply comes."""
    with pytest.raises(InvalidArgument):
        criterion(checks, **given)


def test_a_baseline_tells_criteria_apart_by_what_they_ask() -> None:
    """The same checks have the same fingerprint, other checks another."""

    def structure(**form: Any) -> str:
        judge = criterion([at("$.n", **form)], views=JSON)
        return criterion_structure(Criterion("c", judge, at_least=0.9))

    assert structure(eq=1) == structure(eq=1)
    assert len({structure(eq=1), structure(eq=2), structure(gt=1)}) == 3


# --- XPath ------------------------------------------------------------------------------------

DOCUMENT = ElementTree.fromstring(
    "<r a='1'>t0<b x='2'>hi<c>1</c>tail</b><b x='3'><c>2</c><c>3</c></b>"
    "<d><b><c>4</c></b></d>end<e>x<f/>x</e></r>"
)


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("/r/b", ["hi1tail", "23"]),
        ("b/c", ["1", "2", "3"]),
        ("//c", ["1", "2", "3", "4"]),
        ("//c[1]", ["1", "2", "4"]),
        ("/r/b[2]/c[last()]", ["3"]),
        ("/r/b[@x='3']/c", ["2", "3"]),
        ("/r/@a", ["1"]),
        ("//b[c='4']/..", ["4"]),
        ("//c[.!='2']", ["1", "3", "4"]),
        ("/r/d | /r/e", ["4", "xx"]),
        ("count(//c)", ["4"]),
        ("string(/r/b[1])", ["hi1tail"]),
        ("e/text()", ["x", "x"]),
        ("/r/*[@x]/@x", ["2", "3"]),
        ("/nothing", []),
        ("d//c", ["4"]),
        ("child::b/c", ["1", "2", "3"]),
        ("sum(//c)", ["10"]),
        ("//c[. > 2]", ["3", "4"]),
        ("//b[position() > 1]/c", ["2", "3"]),
        ("//b[not(@x)]/c", ["4"]),
        ("r = 'x'", ["false"]),
    ],
)
def test_paths_select_by_xpath(path: str, values: list[str]) -> None:
    """Worked out by hand from the document above."""
    assert values == parse_xpath(path).select(DOCUMENT)


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/r/", "r[", "r[1", "$x", "a b", "ns:a", "", "r[@]", "a" * 2000),
        *("//*//*//*//*", "unknown(//c)", "for $x in r return $x"),
        "r" + "[r" * 30 + "]" * 30,
        "(" * 900,
    ],
)
def test_what_is_no_path_is_refused(path: str) -> None:
    """With a reason, whether it is wrong or would not end."""
    with pytest.raises(XPathProblem):
        parse_xpath(path)


def test_without_the_library_a_path_is_refused_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The library is an optional dependency."""
    monkeypatch.setitem(sys.modules, "elementpath", None)
    with pytest.raises(XPathProblem, match=r"pip install 'trialwise\[xpath\]'"):
        parse_xpath("/r")


def test_random_paths_select_what_the_standard_library_finds() -> None:
    """Paths that ElementTree knows as well select the same elements."""
    random = Random(5)
    steps = ["b", "c", "d", "*", "b[1]", "c[2]", "c[last()]", "b[@x]", "b[@x='3']", "b[c='2']"]
    for _ in range(400):
        parts = [random.choice(steps) for _ in range(random.randrange(1, 4))]
        path = random.choice(["", ".//"]) + "/".join(parts)
        theirs = ["".join(one.itertext()) for one in DOCUMENT.findall(path)]

        assert sorted(theirs) == sorted(parse_xpath(path).select(DOCUMENT)), path
