"""Includes: other files of the suite's folder, taken in where they are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from trialwise.suite import Suite, SuiteError

Load = Callable[..., Suite]
Refused = Callable[..., SuiteError]

BASE = 'service: {command: [echo, "{input}"]}\ninputs: [one]\n'
CRITERION = '{name: c, contains: "1", at_least: 90%}'


def write(folder: Path, **files: str) -> None:
    """Files by name, a double underscore standing for a folder."""
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_mapping_takes_in_the_keys_of_a_file(load: Load, tmp_path: Path) -> None:
    """What is written in place goes before it, and the first file before the second."""
    write(
        tmp_path,
        first="trials: 10\nretries: 1\n",
        second="trials: 20\nretries: 2\nconcurrency: 3\n",
    )
    options = (
        load(f"include: [first.yaml, second.yaml]\n{BASE}criteria: [{CRITERION}]\nretries: 5\n")
        .contracts[0]
        .options
    )

    assert (10, 5, 3) == (options.trials, options.retries, options.concurrency)


def test_a_list_takes_in_the_items_of_a_file(load: Load, tmp_path: Path) -> None:
    """A list of them, or one mapping; files may include others, from their own folder."""
    write(
        tmp_path,
        common__criteria='- {name: a, contains: "1", at_least: 90%}\n- include: more.yaml\n',
        common__more="name: b\nnever_fails: true\ninclude: deep/check.yaml\n",
        common__deep__check="parses: json\n",
    )
    suite = load(f"{BASE}criteria:\n  - include: common/criteria.yaml\n  - {CRITERION}\n")

    criteria = suite.contracts[0].contract.criteria
    assert ["a", "b", "c"] == [one.name for one in criteria]
    assert 4 == len(suite.files)


def test_a_problem_in_an_included_file_is_shown_there(refused: Refused, tmp_path: Path) -> None:
    """With that file's name, line and column."""
    write(tmp_path, sub__criteria="- name: a\n  contains: x\n  at_least: 95\n")
    error = refused(f"{BASE}criteria: [{{include: sub/criteria.yaml}}]\n")

    (only,) = error.problems
    assert (str(tmp_path / "sub" / "criteria.yaml"), 3, 13) == (only.file, only.line, only.column)


@pytest.mark.parametrize(
    ("include", "message"),
    [
        ("missing.yaml", "cannot be read (No such file or directory)"),
        (".", "is a folder"),
        ("../outside.yaml", "must stay in the suite's folder"),
        ("/etc/hostname", "must stay in the suite's folder"),
        ("link.yaml", "must stay in the suite's folder"),
        ("trialwise.yaml", "that has no end"),
        ("'${HOME}/x.yaml'", "must be the path of a YAML file"),
        ("5", "must be the path of a YAML file"),
        ("{a: b}", "must be the path of a YAML file"),
        ('"a\\0b"', "must be the path of a YAML file"),
        ("list.yaml", "an included mapping is expected here, this is a list"),
        ("broken.yaml", "this is not YAML"),
        ("latin.yaml", "is not UTF-8"),
    ],
)
def test_an_include_that_cannot_be_is_refused(
    refused: Refused, tmp_path: Path, include: str, message: str
) -> None:
    """Nothing outside the folder is read, by whatever way it is named."""
    outside = tmp_path.parent / "outside.yaml"
    outside.write_text("trials: 5\n")
    (tmp_path / "link.yaml").symlink_to(outside)
    (tmp_path / "latin.yaml").write_bytes(b"trials: \xe9\n")
    write(tmp_path, list="- a\n", broken="a: [\n")

    error = refused(f"include: {include}\n{BASE}criteria: [{CRITERION}]\n")

    assert message in str(error)


def test_files_that_include_one_another_are_refused(refused: Refused, tmp_path: Path) -> None:
    """Also where the way round goes through the values of keys."""
    write(tmp_path, a="any_of:\n  - include: b.yaml\n", b="not: {include: a.yaml}\n")
    error = refused(f"{BASE}criteria: [{{name: c, at_least: 90%, include: a.yaml}}]\n")

    assert "that has no end" in str(error)


def test_includes_that_multiply_are_refused(refused: Refused, tmp_path: Path) -> None:
    """Each file includes the next ten times."""
    for level in range(6):
        items = "".join(f"  - include: l{level + 1}.yaml\n" for _ in range(10))
        write(tmp_path, **{f"l{level}": f"any_of:\n{items}"})
    write(tmp_path, l6="contains: x\n")
    error = refused(f"{BASE}criteria: [{{name: c, at_least: 90%, include: l0.yaml}}]\n")

    assert "at most 100 files" in str(error)


def test_a_key_of_that_name_in_data_is_data(load: Load) -> None:
    """Only what is read as a part of the suite is looked at."""
    suite = load(
        'service: {command: [echo, "{input}"]}\n'
        "inputs: [{value: {include: x.yaml}}]\n"
        "criteria: [{name: c, equals: {include: y.yaml}, at_least: 90%}]\n"
    )

    assert {"include": "x.yaml"} == suite.contracts[0].contract.samplings["inputs"].inputs[0].value
