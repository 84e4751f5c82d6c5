"""Inputs: in place, as JSON lines, as a table, as files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trialwise.model.claim import Input
from trialwise.suite import Suite, SuiteError

Load = Callable[..., Suite]
Refused = Callable[..., SuiteError]

HEAD = 'service: {command: [echo, "{input}"]}\ncriteria: [{name: c, contains: x, at_least: 90%}]\n'


def inputs(suite: Suite) -> tuple[Input, ...]:
    """Of its first contract."""
    return suite.contracts[0].contract.samplings["inputs"].inputs


def values(suite: Suite) -> list[Any]:
    """What is asked."""
    return [one.value for one in inputs(suite)]


def test_inputs_in_place(load: Load) -> None:
    """Texts and other values as they are, or with what belongs to them."""
    suite = load(
        HEAD
        + """
inputs:
  - plain
  - no
  - 5
  - true
  - [a, {b: c}]
  - {value: {role: user}, id: x, stratum: 3, repetitions: 2, weight: 0.5}
  - {value: ~, id: 99}
  - {value: "multi\\nline"}
"""
    )

    assert (
        Input(id="1", value="plain"),
        Input(id="2", value="no"),
        Input(id="3", value=5),
        Input(id="4", value=True),
        Input(id="5", value=["a", {"b": "c"}]),
        Input(id="x", value={"role": "user"}, stratum="3", repetitions=2, weight=0.5),
        Input(id="99", value=None),
        Input(id="8", value="multi\nline"),
    ) == inputs(suite)


def test_expected_answers(load: Load, tmp_path: Path) -> None:
    """In place, in lines and in tables; no part of what the service is given."""
    (tmp_path / "q.jsonl").write_text(
        '{"value": "a", "expected": {"n": 1}}\n{"value": "b", "expected": null}\n'
        '{"question": "c", "expected": "d"}\n{"value": "e"}\n'
    )
    (tmp_path / "q.csv").write_text("value,expected,gold\na,1,x\nb,,y\n")

    assert (
        Input(id="1", value="a", expected="555"),
        Input(id="2", value="b", expected=[1, {"c": 2}]),
        Input(id="3", value="c"),
        Input(id="4", value="d"),
    ) == inputs(
        load(
            HEAD
            + """
inputs:
  - {value: a, expected: "555"}
  - {value: b, expected: [1, {c: 2}]}
  - {value: c, expected: ~}
  - d
"""
        )
    )
    assert (
        Input(id="1", value="a", expected={"n": 1}),
        Input(id="2", value="b"),
        Input(id="3", value={"question": "c"}, expected="d"),
        Input(id="4", value="e"),
    ) == inputs(load(HEAD + "inputs: {jsonl: q.jsonl}\n"))
    assert (Input(id="1", value="a", expected="1"), Input(id="2", value="b")) == inputs(
        load(HEAD + "inputs: {csv: q.csv}\n")
    )
    assert ["x", "y"] == [
        one.expected for one in inputs(load(HEAD + "inputs: {csv: q.csv, expected: gold}\n"))
    ]


def test_a_comparison_with_what_is_not_there_is_refused(load: Load, refused: Refused) -> None:
    """Before a trial is paid for that could not pass; `any_of` leaves another way."""
    head = 'service: {command: [echo, "{input}"]}\ninputs: [{value: a, expected: a}, b]\n'
    criterion = "criteria: [{{name: right, {}, at_least: 90%}}]\n"
    message = "`expected` must be given for the input '2': 'right' compares with it"

    for spelled in (
        "as_expected: equals",
        "not: {as_expected: contains}",
        "named: {name: n, check: {as_expected: {how: equals, trim: true}}}",
        "all_of: [{contains: a}, {as_expected: equals}]",
    ):
        assert message in str(refused(head + criterion.format(spelled)))
    either = "any_of: [{as_expected: equals}, {contains: b}]"
    assert load(head + criterion.format(either)).contracts
    assert load(head.replace(", b", "") + criterion.format("as_expected: equals")).contracts
    wrong = refused(head + criterion.format("as_expected: {how: matches}"))
    assert "equals" in str(wrong)
    wrong = refused(head + criterion.format("as_expected: {how: contains, trim: true}"))
    assert "`trim` must be left out for contains" in str(wrong)


def test_two_inputs_of_one_id_are_refused(refused: Refused) -> None:
    """Also where one of them is only numbered."""
    error = refused(HEAD + "inputs:\n  - {value: a, id: x}\n  - {value: b, id: x}\n")

    assert "the id `x` is that of the input on line 4 already" in str(error)
    assert 5 == error.problems[0].line
    assert "the id `2` is that" in str(refused(HEAD + "inputs: [{value: a, id: '2'}, b]\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("inputs: []\n", "a list of at least one input, it has 0"),
        ("inputs: hello\n", "a list of inputs, or a file that ends with .csv or .jsonl"),
        ("inputs: [~]\n", "an item of `inputs` is empty"),
        ("inputs: [{text: x}]\n", "unknown key `text` in an input"),
        ("inputs: [{value: x, weight: 0}]\n", "`weight` must be a finite number above 0"),
        ("inputs: [{value: x, repetitions: 0}]\n", "a whole number of at least 1"),
        ("inputs: [{value: x, id: [a]}]\n", "`id` must be text or a number"),
        ("inputs: {}\n", "lacks one of `jsonl`, `csv`, `files`"),
        ("inputs: {jsonl: a, csv: b}\n", "`jsonl` and `csv` exclude one another"),
        ("inputs: {jsonl: none.jsonl}\n", "the file cannot be read (No such file or directory)"),
        ("inputs: {jsonl: .}\n", "the file is a folder"),
        ("inputs: {files: 'none/*.txt'}\n", "no file matches the pattern"),
        ("inputs: {files: '*.yaml', value: x}\n", "`value` does not go with `files`"),
        ("inputs: {jsonl: x, delimiter: ;}\n", "`delimiter` does not go with `jsonl`"),
        ("inputs: {csv: x, delimiter: ab}\n", "must be one character"),
        ("inputs: {csv: x, delimiter: 5}\n", "must be one character"),
    ],
)
def test_inputs_that_cannot_be_are_refused(refused: Refused, text: str, message: str) -> None:
    """With the place in the suite."""
    assert message in str(refused(HEAD + text))


def test_json_lines(load: Load, tmp_path: Path) -> None:
    """Values, objects as they are, or records of an input; blank lines do not count."""
    (tmp_path / "q.jsonl").write_text(
        '"text"\n\n5\n{"question": "a", "n": 1}\n'
        '{"value": "b", "id": "x", "stratum": 2, "repetitions": 3, "weight": 0.5}\n'
        '{"id": "y", "question": "c"}\n[1, 2]\n'
    )

    assert (
        Input(id="1", value="text"),
        Input(id="2", value=5),
        Input(id="3", value={"question": "a", "n": 1}),
        Input(id="x", value="b", stratum="2", repetitions=3, weight=0.5),
        Input(id="y", value={"id": "y", "question": "c"}),
        Input(id="6", value=[1, 2]),
    ) == inputs(load(HEAD + "inputs: {jsonl: q.jsonl}\n"))


def test_fields_are_chosen_and_put_together(load: Load, tmp_path: Path) -> None:
    """One field, or a text made of several; what a field holds is not looked at again."""
    (tmp_path / "q.jsonl").write_text(
        '{"q": {"deep": 1}, "lang": "fr", "key": 7}\n{"q": "{lang}", "lang": "de", "key": 8}\n'
    )

    assert [{"deep": 1}, "{lang}"] == values(load(HEAD + "inputs: {jsonl: q.jsonl, value: q}\n"))
    suite = load(HEAD + "inputs: {jsonl: q.jsonl, value: 'In {lang}: {q}!', id: key}\n")
    assert [("7", 'In fr: {"deep": 1}!'), ("8", "In de: {lang}!")] == [
        (one.id, one.value) for one in inputs(suite)
    ]


def test_a_table(load: Load, tmp_path: Path) -> None:
    """Quoted fields over several lines, a byte order mark, another delimiter, empty cells."""
    (tmp_path / "q.csv").write_bytes(
        "\ufeffvalue;id;stratum;weight;repetitions;more\r\n"
        '"What; is ""it""\r\nnow?";a;x;0.5;2;z\r\n\r\nplain;b;;;;z\r\n'.encode()
    )

    assert (
        Input(id="a", value='What; is "it"\r\nnow?', stratum="x", weight=0.5, repetitions=2),
        Input(id="b", value="plain"),
    ) == inputs(load(HEAD + "inputs: {csv: q.csv, delimiter: ;}\n"))


def test_a_table_of_one_column_needs_no_name(load: Load, tmp_path: Path) -> None:
    """And one with tabs is a table, too."""
    (tmp_path / "q.csv").write_text("question\na\nb\n")
    (tmp_path / "t.tsv").write_text("question\tlang\na\tfr\n")

    assert ["a", "b"] == values(load(HEAD + "inputs: {csv: q.csv}\n"))
    text = 'inputs: {csv: t.tsv, delimiter: "\\t", value: "{lang}: {question}"}\n'
    assert ["fr: a"] == values(load(HEAD + text))


@pytest.mark.parametrize(
    "case",
    [
        ("jsonl", '"a"\n{"a": \n', "", 2, "this is not JSON"),
        ("jsonl", '"a"\nNaN\n', "", 2, "it has no NaN"),
        ("jsonl", "1e999\n", "", 1, "too large"),
        ("jsonl", "null\n", "", 1, "an input cannot be null"),
        ("jsonl", '"\\ud800"\n', "", 1, "half a surrogate pair"),
        ("jsonl", "[" * 100_000 + "\n", "", 1, "this is not JSON"),
        ("jsonl", '{"value": 1, "x": 2}\n', "", 1, "`x` is not a field of an input"),
        ("jsonl", '{"value": 1, "expcted": 2}\n', "", 1, "did you mean `expected`?"),
        ("jsonl", '{"value": "a\n', "", 1, "Unterminated string starting at column 11"),
        ("jsonl", '{"value": 1, "weight": "a"}\n', "", 1, "`weight` must be a number above 0"),
        ("jsonl", '{"value": 1, "weight": -1}\n', "", 1, "`weight` must be a finite number"),
        ("jsonl", '{"value": 1, "repetitions": 1.5}\n', "", 1, "`repetitions` must be a whole"),
        ("jsonl", '{"value": 1, "id": ["a"]}\n', "", 1, "`id` must be text or a number"),
        ("jsonl", '{"a": 1}\n', ", value: b", 1, "there is no field `b`; there are `a`"),
        ("jsonl", '{"a": 1}\n', ", value: a, id: b", 1, "there is no field `b`"),
        ("jsonl", "5\n", ", value: a", 1, "it has no fields"),
        ("jsonl", '{"value": 1, "id": "x"}\n{"value": 2, "id": "x"}\n', "", 2, "on line 1 already"),
        ("csv", "a,a\n1,2\n", ", value: a", 1, "two columns are called `a`"),
        ("csv", "a,b\n1\n", ", value: a", 2, "the row has 1 fields, the first line 2"),
        ("csv", 'a,b\n"x\n', ", value: a", 2, "this is not CSV"),
        ("csv", "value,repetitions\nx,two\n", "", 2, "`repetitions` must be a whole number"),
    ],
)
def test_a_mistake_in_a_file_of_inputs_is_shown_there(
    refused: Refused, tmp_path: Path, case: tuple[str, str, str, int, str]
) -> None:
    """With that file's name and line."""
    name, content, options, line, message = case
    (tmp_path / f"q.{name}").write_text(content)
    error = refused(HEAD + f"inputs: {{{name}: q.{name}{options}}}\n")

    (problem,) = error.problems
    assert message in problem.message
    assert (str(tmp_path / f"q.{name}"), line) == (problem.file, problem.line)


@pytest.mark.parametrize(
    ("name", "content"), [("jsonl", "\n\n"), ("csv", ""), ("csv", "value,b\n")]
)
def test_a_file_without_inputs_is_refused(
    refused: Refused, tmp_path: Path, name: str, content: str
) -> None:
    """A run of nothing is never meant."""
    (tmp_path / f"q.{name}").write_text(content)

    assert "the file holds no inputs" in str(refused(HEAD + f"inputs: {{{name}: q.{name}}}\n"))


def test_a_file_that_is_wrong_throughout_stops_early(refused: Refused, tmp_path: Path) -> None:
    """Ten lines are enough to see it."""
    (tmp_path / "q.jsonl").write_text("{\n" * 1000)

    assert 10 == len(refused(HEAD + "inputs: {jsonl: q.jsonl}\n").problems)


def test_a_file_that_is_not_utf8_is_refused(refused: Refused, tmp_path: Path) -> None:
    """With the offset of the byte."""
    (tmp_path / "q.csv").write_bytes(b"value\ncaf\xe9\n")

    assert "is not UTF-8 (byte 0xe9 at offset 9)" in str(refused(HEAD + "inputs: {csv: q.csv}\n"))


def test_files_by_pattern(load: Load, tmp_path: Path) -> None:
    """In the order of their names, called by their paths."""
    (tmp_path / "p" / "deep").mkdir(parents=True)
    for name, text in (("p/b.txt", "B"), ("p/a.txt", "A\n"), ("p/deep/c.txt", "C"), ("p/d.md", "")):
        (tmp_path / name).write_text(text)

    assert [("p/a.txt", "A\n"), ("p/b.txt", "B")] == [
        (one.id, one.value) for one in inputs(load(HEAD + "inputs: {files: p/*.txt}\n"))
    ]
    suite = load(HEAD + "inputs: {files: [p/d.md, 'p/**/*.txt']}\n")
    assert ["p/d.md", "p/a.txt", "p/b.txt", "p/deep/c.txt"] == [one.id for one in inputs(suite)]


def test_a_file_that_two_patterns_find_is_refused(refused: Refused, tmp_path: Path) -> None:
    """It would be two inputs of one name."""
    (tmp_path / "a.txt").write_text("A")

    assert "the id `a.txt` is that of" in str(refused(HEAD + "inputs: {files: ['*.txt', a.*]}\n"))
