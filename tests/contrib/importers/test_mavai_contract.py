"""A contract file is checked as a whole, and refused with every reason at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from trialwise.contrib.importers import ImportRefused, import_mavai

Write = Callable[[str, str], Path]

HEAD = "format: mavai-contract/1\ncontract: c\nservice: s\n"
CRITERIA = "criteria: [{threshold: 0.9, contains: ok}]\n"
INPUTS = "inputs: [Alice]\n"
VIEWS = "transforms: {doc: json, page: xml}\n"


def messages(path: Path) -> list[str]:
    """Why a contract is refused, each with its line and column."""
    with pytest.raises(ImportRefused) as caught:
        import_mavai(path)
    for problem in caught.value.problems:
        assert str(path) == problem.file
        assert problem.excerpt
    return [f"{one.line}:{one.column} {one.message}" for one in caught.value.problems]


def criteria(*lines: str) -> str:
    """A contract with one criterion of some checks."""
    checks = "".join(f"      - {line}\n" for line in lines)
    return HEAD + VIEWS + INPUTS + "criteria:\n  - threshold: 0.9\n    postconditions:\n" + checks


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # The file.
        (
            "format: mavai-contract/2\n" + HEAD[25:] + CRITERIA + INPUTS,
            "1:9 `format` must be mavai-c",
        ),
        (HEAD + CRITERIA, "1:1 a contract needs `inputs`"),
        (HEAD + CRITERIA + INPUTS + "extra: 1\n", "6:1 unknown key `extra` in a contract"),
        (HEAD + CRITERIA + INPUTS + "criterion: 1\n", "did you mean `criteria`?"),
        (HEAD + CRITERIA + INPUTS + "samples: 50\n", "6:1 `samples` was removed from contracts"),
        (HEAD + CRITERIA + INPUTS + "budget: 5\n", "6:1 `budget` is reserved"),
        (HEAD + CRITERIA + INPUTS + "intent: fast\n", "6:9 `intent` must be one of verification"),
        (
            HEAD + CRITERIA + INPUTS + "confidence: 1\n",
            "6:13 `confidence` must be a number strictly",
        ),
        (HEAD + CRITERIA + "inputs: []\n", "5:9 `inputs` must be a list of at least one input"),
        (
            HEAD.replace("contract: c", "contract: ''") + CRITERIA + INPUTS,
            "2:11 `contract` must be",
        ),
        # Views.
        (
            HEAD + CRITERIA + INPUTS + "transforms: {raw: json}\n",
            "6:14 `raw` is the reply as it is",
        ),
        (HEAD + CRITERIA + INPUTS + "transforms: {}\n", "6:13 `transforms` must map at least one"),
        (HEAD + CRITERIA + INPUTS + "transforms: {a: 5}\n", "6:17 the view `a` must name"),
        (criteria("{in: dok, equals: a}"), "9:14 `in` names the view `dok`, which is not declared"),
        (criteria("{parses: dok}"), "9:18 `parses` must be the name of a declared view"),
        (criteria("{in: raw, path: $.a, equals: a}"), "9:14 a `path` needs structure"),
        (criteria("{path: $.a, equals: a}"), "9:9 `path` without `in`, and no view it could mean"),
        (criteria("{in: page, path: $.a, equals: a}"), "9:26 `path` must be an XPath"),
        (criteria("{in: doc, path: '$.a[', equals: a}"), "9:25 `path` must be a JSONPath"),
        # Forms.
        (criteria("{in: doc}"), "9:9 a check must hold exactly one form, it holds none"),
        (criteria("{equal: a}"), "9:10 unknown key `equal` in a check; did you mean `equals`?"),
        (criteria("{equals: true}"), "a truth value is compared with `is`"),
        (criteria("{equals: null}"), "null is compared with `is-null: true`"),
        (
            criteria("{one-of: []}"),
            "`one-of` must be a list of at least one text, got an empty list",
        ),
        (criteria("{one-of: [1]}"), "`one-of` must be a list of at least one text"),
        (criteria("{matches: '('}"), "9:19 `matches` must be a regular expression"),
        (criteria("{eq: 1e}"), "9:14 `eq` must be a number, or the text of one"),
        (criteria("{eq: true}"), "9:14 `eq` must be a number"),
        (criteria("{is-null: false}"), "9:19 `is-null` must be true: its opposite is not offered"),
        (criteria("{satisfies: ''}"), "9:21 `satisfies` must be the name of a check"),
        (criteria("{in: doc, path: $.a, satisfies: x}"), "`path` does not go with `satisfies`"),
        (criteria("{in: doc, equals-set: [1]}"), "9:9 `equals-set` compares what a path selects"),
        (criteria("{in: doc, path: $.a, equals-set: [[1]]}"), "`equals-set` must be a list"),
        (
            criteria("{in: doc, path: $.a, count-equals: -1}"),
            "`count-equals` must be a whole number",
        ),
        (criteria("{equals: a, optional: false}"), "9:31 `optional` must be true"),
        (
            criteria("{in: doc, path: $.a, set-of: {required: [a]}}"),
            "without it, it is `equals-set`",
        ),
        (
            criteria("{in: doc, path: $.a, set-of: {required: [a], refuse-extras: false}}"),
            "without it, it is `contains-set`",
        ),
        (
            criteria("{in: doc, path: $.a, set-of: {required: [a], optional: [a, b]}}"),
            "lists that do not overlap",
        ),
        (
            criteria("{in: doc, path: $.a, set-of: {optional: [a, b], min-present: 0.5}}"),
            "`min-present` as a whole number, or a percentage",
        ),
        (
            criteria("{in: doc, path: $.a, set-of: {optional: [a, a, b], min-present: 2}}"),
            "if all are needed, they are `required`",
        ),
        (
            criteria("{in: doc, path: $.a, set-of: {optional: [a], most: 2}}"),
            "a mapping of `required`, `optional`, `min-present` and `refuse-extras`",
        ),
        # Criteria.
        (HEAD + "criteria: [5]\n" + INPUTS, "4:12 a criterion must be a mapping, got `5`"),
        (
            HEAD + "criteria: [{equals: a, in: raw}]\n" + INPUTS,
            "`in` does not belong on a criterion",
        ),
        (HEAD + "criteria: [{equals-set: [a]}]\n" + INPUTS, "unknown key `equals-set`"),
        (HEAD + "criteria: [{threshold: 1, contains: a}]\n" + INPUTS, "4:24 `threshold` must be"),
        (
            HEAD + "criteria: [{threshold: empirical, contains: a}]\n" + INPUTS,
            "`threshold` must be a",
        ),
        (
            HEAD + "criteria: [{threshold: 0.9, confidence: 0.9, contains: a}]\n" + INPUTS,
            "4:41 `confidence` goes with a measured baseline",
        ),
        (
            HEAD + "criteria: [{name: x, contains: a}, {name: x, contains: b}]\n" + INPUTS,
            "two criteria are called `x`",
        ),
        (
            HEAD + "criteria: [{contains: a, optional-slack: -1}]\n" + INPUTS,
            "`optional-slack` must be",
        ),
        (
            HEAD + "criteria: [{contains: a, optional-slack: 20}]\n" + "inputs: [null]\n",
            "5:10 an input",
        ),
        # Inputs.
        (HEAD + CRITERIA + "inputs: [[]]\n", "5:10 an input must hold something"),
        (HEAD + CRITERIA + "inputs: [[a, {text: b}]]\n", "not of both"),
        (HEAD + CRITERIA + "inputs: [{text: a, file: b}]\n", "a part of an input has one key"),
        (HEAD + CRITERIA + "inputs: [{text: 5}]\n", "5:17 `text` must be text or `{file: path}`"),
        (HEAD + CRITERIA + "inputs: [{input: a}]\n", "5:10 an input needs `expected`"),
        (
            HEAD + CRITERIA + "inputs: [{input: a, expected: {equals: a}, tag: x}]\n",
            "unknown key `tag`",
        ),
        (HEAD + CRITERIA + "inputs: [{input: a, expected: []}]\n", "or a list of at least one"),
        (
            HEAD
            + CRITERIA
            + "inputs: [{input: a, expected: {equals: b}}, {input: a, expected: {equals: c}}]\n",
            "two inputs are the same and expect different things",
        ),
        (HEAD + CRITERIA + "inputs: [{text: {file: ./absent.txt}}]\n", "absent.txt cannot be read"),
        # Roots.
        (HEAD + CRITERIA + INPUTS + "roots: {}\n", "6:8 `roots` must map names to folders"),
        (HEAD + CRITERIA + INPUTS + "roots: {a: ''}\n", "the root `a` must be a relative path"),
        (HEAD + CRITERIA + INPUTS + "roots: {a: 'C:/x'}\n", "the root `a` must be a relative path"),
        (HEAD + CRITERIA + INPUTS + "roots: {a: nowhere}\n", "the root `a` is not a folder"),
        (HEAD + CRITERIA + INPUTS + "roots: {a: .}\n", "6:9 the root `a` is declared and nothing"),
        (HEAD + CRITERIA + "inputs: [{file: '@b/x'}]\n", "the root `b` is not declared"),
        (
            HEAD + CRITERIA + "inputs: [{file: '@a'}]\nroots: {a: .}\n",
            "which is a folder and no file",
        ),
        (HEAD + CRITERIA + "inputs: [{file: '@a/../x'}]\nroots: {a: .}\n", "leaves its root"),
        # Latency.
        (HEAD + CRITERIA + INPUTS + "latency: {}\n", "6:10 `latency` needs a limit"),
        (HEAD + CRITERIA + INPUTS + "latency: {p95: 0}\n", "6:16 `p95` must be a whole number"),
        (HEAD + CRITERIA + INPUTS + "latency: {p75: 9}\n", "unknown key `p75` in `latency`"),
        (HEAD + CRITERIA + INPUTS + "latency: {empirical: [p75]}\n", "a percentile is one of p50"),
        (
            HEAD + CRITERIA + INPUTS + "latency: {empirical: [p50, p50]}\n",
            "names each percentile once",
        ),
    ],
)
def test_a_wrong_contract_is_refused_at_the_place_and_by_the_key(
    write: Write, text: str, expected: str
) -> None:
    """Every rule that the format states, by a file that breaks it alone."""
    found = messages(write("contract.yaml", text))

    assert any(expected in one for one in found), found


def test_everything_that_is_wrong_is_said_at_once(write: Write) -> None:
    """A contract with six mistakes gives six reasons, in the order of the file."""
    text = """\
format: mavai-contract/1
contract: c
service: s
kind: test
confidence: 2
latency: {p95: 100, p99: 50}
criteria:
  - {threshold: 0.9, tolerate: 0.8, contains: a}
  - {threshold: 0.9}
inputs: [{input: a, expected: {parses: x}}]
"""
    lines = [int(one.partition(":")[0]) for one in messages(write("contract.yaml", text))]

    assert [4, 5, 6, 8, 9, 10] == lines


def test_a_root_may_be_moved_by_the_environment(write: Write, tmp_path: Path) -> None:
    """`MAVAI_ROOT_<NAME>` stands for a declared root, absolute paths allowed."""
    write("elsewhere/note.txt", "from elsewhere")
    text = (
        HEAD
        + CRITERIA
        + "inputs: [{text: {file: '@my-corpus/note.txt'}}]\nroots: {my-corpus: absent}\n"
    )
    path = write("contract.yaml", text)
    imported = import_mavai(path, environment={"MAVAI_ROOT_MY_CORPUS": str(tmp_path / "elsewhere")})

    assert ["from elsewhere"] == imported.suite["inputs"]


def test_a_file_that_is_too_large_is_refused(write: Write) -> None:
    """Before it is read into a suite."""
    write("big.txt", "x" * 5_000_001)
    found = messages(
        write("contract.yaml", HEAD + CRITERIA + "inputs: [{text: {file: big.txt}}]\n")
    )

    assert "at most 5,000,000 are read" in found[0]
