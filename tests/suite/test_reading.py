"""YAML 1.2 with places, and everything that is no suite refused before it is built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trialwise.declarations.written import Node
from trialwise.suite.suite_problems import Problem, Problems, Source, SuiteError
from trialwise.suite.yaml_reading import MAX_DEPTH, MAX_NODES, parse_yaml, plain


def read(text: str) -> Node:
    """The root of a text without problems."""
    problems = Problems()
    root, _ = parse_yaml(Source(Path("x.yaml"), text), problems, room=MAX_NODES)
    problems.check()
    assert root is not None
    return root


def problem(text: str) -> Problem:
    """The one problem of a text."""
    with pytest.raises(SuiteError) as caught:
        read(text)
    (only,) = caught.value.problems
    return only


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("off", "off"),
        ("Yes", "Yes"),
        ("true", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("0o17", 15),
        ("017", 17),
        ("0x1F", 31),
        ("-3", -3),
        ("1_000", "1_000"),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("2001-01-01", "2001-01-01"),
        ("12:30:45", "12:30:45"),
        ("90%", "90%"),
        ("'5'", "5"),
        ('"true"', "true"),
        ("!!str 5", "5"),
        ("!!int 5", 5),
        ("=", "="),
        ("+", "+"),
        (".", "."),
    ],
)
def test_scalars_are_those_of_the_core_schema(text: str, value: Any) -> None:
    """YAML 1.2 as its chapter 10.3 has it: no Norway problem, no dates, no sexagesimals."""
    found = plain(read(f"a: {text}"))["a"]

    assert value == found
    assert type(value) is type(found)


def test_every_node_knows_where_it_stands() -> None:
    """Lines and columns count from 0, in characters."""
    root = read("a: 1\nb:\n  - zwei\n  - ü: [x, y]\n")
    item = root.entries["b"][1].value[1]
    key, value = item.entries["ü"]

    assert (3, 4) == (key.line, key.column)
    assert (3, 7, 3, 13) == (value.line, value.column, value.end_line, value.end_column)
    assert (3, 11) == (value.value[1].line, value.value[1].column)


def test_anchors_and_merge_keys_repeat_what_was_written() -> None:
    """What is written in place goes before what is merged, and earlier merges before later ones."""
    text = "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc: {<<: [*a, *b], x: 0}\nd: *a\n"

    assert {"x": 0, "y": 2, "z": 4} == plain(read(text))["c"]
    assert {"x": 1, "y": 2} == plain(read(text))["d"]


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("a: 1\na: 2\n", 2, 1, "`a` is given twice, first on line 1"),
        ("{a: {b: 1, b: 2}}", 1, 12, "`b` is given twice"),
        ("1: 2\n", 1, 1, "a key must be text"),
        ("~: 2\n", 1, 1, "a key must be text"),
        ("? [a]\n: 2\n", 1, 3, "a key must be text"),
        ("a: *b\n", 1, 4, "there is no `&b` before it"),
        ("a: &x [*x]\n", 1, 8, "stands within what it repeats"),
        ("a: 1\n---\nb: 2\n", 2, 1, "a second YAML document"),
        ("%YAML 1.1\n---\na: no\n", 2, 1, "1.2 is read"),
        ("a: !thing 5\n", 1, 4, "the tag !thing is unknown"),
        ("a: !!set {b}\n", 1, 4, "is unknown"),
        ("a: .nan\n", 1, 4, "no finite number"),
        ("a: -.inf\n", 1, 4, "no finite number"),
        ("a: 1e999\n", 1, 4, "too large for a double"),
        (f"a: {'9' * 5000}\n", 1, 4, "a number of 5000 digits"),
        ("a: !!int x\n<<: 5\n", 2, 5, "`<<` takes in mappings"),
        ('a: "\\ud800"\n', 1, 4, "half a surrogate pair"),
        ("a:\n\t- b\n", 2, 1, "no tabs"),
        ("a: b: c\n", 1, 5, "needs quotes"),
        ("a: [1, 2\n", 2, 1, "a bracket or a comma is missing"),
        ('a: "b\n', 2, 1, "a quote is not closed"),
        ("a: %b\n", 1, 4, "begins so needs quotes"),
        ("", 1, 1, "the file is empty"),
        ("# only a comment\n", 1, 1, "the file is empty"),
        ("a: \x07\n", 1, 4, "this is not YAML"),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(
    text: str, line: int, column: int, message: str
) -> None:
    """Each kind of mistake, with its place."""
    found = problem(text)

    assert message in found.message
    assert (line, column) == (found.line, found.column)


def test_several_mistakes_are_found_in_one_pass() -> None:
    """Reading goes on after what the parser itself can read past."""
    with pytest.raises(SuiteError) as caught:
        read("a: 1\na: 2\nb: .nan\n3: 4\n")

    assert [2, 3, 4] == [one.line for one in caught.value.problems]


def test_nothing_as_a_value_is_placed_at_its_key() -> None:
    """The parser would point at the next line."""
    root = read("a:\nb: 1\n")

    assert (0, 0) == (root.entries["a"][1].line, root.entries["a"][1].column)


def test_a_billion_laughs_is_a_clear_error() -> None:
    """Aliases count as often as they are followed, before anything is built."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, 10)]

    assert (
        "more than 100,000 values, once aliases are followed" in problem("\n".join(lines)).message
    )


def test_depth_counts_through_aliases() -> None:
    """A chain of anchors, each within the next, nests as deep as it is long."""
    half = MAX_DEPTH // 2 + 5
    text = f"a: &a {'[' * half}{']' * half}\nb: {'[' * half}*a{']' * half}\n"

    assert "deep once aliases are followed" in problem(text).message


@pytest.mark.parametrize("bracket", ["[", "{", "- ", "? "])
def test_brackets_without_end_are_a_clear_error(bracket: str) -> None:
    """The parser would take minutes over a few thousand of them."""
    assert "nested more than" in problem(bracket * 5000).message


def test_merging_oneself_is_a_clear_error() -> None:
    """A merge is an alias like any other."""
    assert "stands within what it repeats" in problem("a: &a {<<: *a}\n").message


def test_a_bom_and_windows_line_ends_are_fine() -> None:
    """Editors write them."""
    assert {"a": 1, "b": ["c"]} == plain(read("a: 1\r\nb:\r\n  - c\r\n"))
