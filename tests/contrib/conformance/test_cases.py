"""Reading reference folders: R's habits are understood, anything else is named and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trialwise.contrib.conformance.reference_cases import find_folders, read_folder
from trialwise.errors import ReferenceDataError

CASE = {
    "name": "nine of ten",
    "inputs": {"successes": 9, "trials": 10, "confidence": 0.95},
    "expected": {"lower": 0.6, "upper": 1, "point": 0.9},
}


def suite(**changes: Any) -> dict[str, Any]:
    return {"suite": "wilson_ci", "tolerance": 1e-10, "cases": [CASE]} | changes


def write(folder: Path, **files: Any) -> Path:
    """Write each value as JSON, or as it is if it is text or bytes; returns the folder."""
    folder.mkdir(exist_ok=True, parents=True)
    for name, body in files.items():
        file = folder / f"{name}.json"
        if isinstance(body, bytes):
            file.write_bytes(body)
        else:
            file.write_text(body if isinstance(body, str) else json.dumps(body), encoding="utf-8")
    return folder


# What R writes


@pytest.mark.parametrize(
    ("written", "understood"),
    [(["lower", "upper"], {"lower", "upper"}), ("lower", {"lower"}), (["lower"], {"lower"})],
)
def test_a_list_of_one_may_be_a_scalar(
    tmp_path: Path, written: object, understood: set[str]
) -> None:
    """`bindingFields` is a list, or a bare string when single."""
    write(
        tmp_path,
        wilson_ci=suite(),
        manifest={
            "suites": {
                "wilson_ci": {
                    "bindingFields": written,
                    "informationalFields": sorted({"lower", "upper", "point"} - understood),
                }
            }
        },
    )

    assert read_folder(tmp_path).suites[0].binding == understood


@pytest.mark.parametrize("empty", [{}, [], None])
def test_an_empty_list_may_be_a_mapping(tmp_path: Path, empty: object) -> None:
    """No informational fields are `{}`; with none binding, every other field binds."""
    entry = {"bindingFields": empty, "informationalFields": "upper"}
    write(tmp_path, wilson_ci=suite(), manifest={"suites": {"wilson_ci": entry}})

    assert read_folder(tmp_path).suites[0].binding == {"lower", "point"}


def test_no_expected_values_may_be_an_empty_list(tmp_path: Path) -> None:
    """`"expected": []` is how R writes a mapping without entries."""
    write(tmp_path, wilson_ci=suite(cases=[CASE | {"expected": []}]))

    assert read_folder(tmp_path).suites[0].cases[0].expected == {}


@pytest.mark.parametrize("version", ["1.5.0", "1.6.0", "1.10.2", "2", "2.0", "1.5"])
def test_releases_from_1_5_on_speak_of_fishers_rules(tmp_path: Path, version: str) -> None:
    """1.10 comes after 1.5."""
    write(tmp_path, wilson_ci=suite(methodologyVersion=version))

    assert read_folder(tmp_path).suites[0].rule == "fisher"


@pytest.mark.parametrize("version", ["1.4.1", "1.0", "0.10.13", "1", None])
def test_earlier_releases_and_silent_ones_speak_of_the_wilson_rules(
    tmp_path: Path, version: str | None
) -> None:
    """The first releases did not say what they were."""
    write(tmp_path, wilson_ci=suite(methodologyVersion=version))

    assert read_folder(tmp_path).suites[0].rule == "wilson"


def test_the_manifest_speaks_for_files_that_do_not(tmp_path: Path) -> None:
    """A file's own release counts, then the manifest's."""
    write(
        tmp_path,
        wilson_ci=suite(),
        older=suite(suite="wilson_lower", methodologyVersion="1.4.1"),
        manifest={"methodologyVersion": "1.6.0", "fixtureVersion": "0.12.0"},
    )
    folder = read_folder(tmp_path)

    assert {s.name: s.rule for s in folder.suites} == {
        "wilson_ci": "fisher",
        "wilson_lower": "wilson",
    }
    assert folder.version == "0.12.0"


def test_a_release_written_as_a_number_is_understood(tmp_path: Path) -> None:
    """1.6 without quotes must not be judged by the older rules in silence."""
    write(tmp_path, wilson_ci=suite(methodologyVersion=1.6))

    assert read_folder(tmp_path).suites[0].rule == "fisher"


@pytest.mark.parametrize(("version", "rule"), [(2, "fisher"), ("v1.4", "wilson")])
def test_a_release_written_in_another_way_is_understood(
    tmp_path: Path, version: object, rule: str
) -> None:
    """Or refused; but never judged by the other rule set in silence."""
    write(tmp_path, wilson_ci=suite(methodologyVersion=version))

    assert read_folder(tmp_path).suites[0].rule == rule


# The folder


def test_a_folder_without_a_manifest_is_read(tmp_path: Path) -> None:
    """Every expected field binds, nothing is mandatory, and a file's name is its suite's."""
    body = suite()
    del body["suite"]
    write(tmp_path, wilson_ci=body)
    folder = read_folder(tmp_path)
    (only,) = folder.suites

    assert (only.name, only.tolerance, only.mandatory) == ("wilson_ci", 1e-10, False)
    assert only.binding == {"lower", "upper", "point"}
    assert (folder.version, folder.absent, folder.absent_mandatory) == ("unversioned", (), ())
    assert only.cases[0].name == "nine of ten"
    assert only.cases[0].inputs["successes"] == 9


def test_suites_that_the_manifest_lists_and_the_folder_lacks_are_told(tmp_path: Path) -> None:
    """Apart from those that are mandatory."""
    write(
        tmp_path,
        wilson_ci=suite(),
        manifest={
            "familyMandatory": ["wilson_ci", "verdict"],
            "suites": {"wilson_ci": {}, "verdict": {}, "feasibility": {}},
        },
    )
    folder = read_folder(tmp_path)

    assert folder.absent == ("feasibility", "verdict")
    assert folder.absent_mandatory == ("verdict",)
    assert folder.suites[0].mandatory


def test_the_tolerance_is_the_files_then_the_manifests_then_none(tmp_path: Path) -> None:
    """One absolute number per suite."""
    silent = suite()
    del silent["tolerance"]
    write(
        tmp_path,
        a=suite(suite="a"),
        b=silent | {"suite": "b"},
        c=silent | {"suite": "c"},
        manifest={"suites": {"a": {"tolerance": 1}, "b": {"tolerance": 1e-6}, "c": {}}},
    )

    assert [s.tolerance for s in read_folder(tmp_path).suites] == [1e-10, 1e-6, 0.0]


def test_a_folder_of_folders_is_read_in_order(tmp_path: Path) -> None:
    """The folder itself if it holds cases, else those directly below it that do."""
    write(tmp_path / "b", x=suite())
    write(tmp_path / "a", x=suite())
    (tmp_path / "notes").mkdir()
    (tmp_path / "readme.md").write_text("words", encoding="utf-8")

    assert find_folders(tmp_path) == [tmp_path / "a", tmp_path / "b"]
    assert find_folders(tmp_path / "a") == [tmp_path / "a"]


def test_what_is_not_a_folder_of_cases_is_named(tmp_path: Path) -> None:
    """Absent, a file, or a folder without any."""
    file = tmp_path / "file.json"
    file.write_text("{}", encoding="utf-8")
    empty = tmp_path / "empty"
    empty.mkdir()
    for path in (tmp_path / "absent", file, empty):
        with pytest.raises(ReferenceDataError, match=path.name):
            find_folders(path)


# What is malformed


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "not json",
        b"\xff\xfe\x00",
        "[]",
        "3",
        "null",
        {},
        {"cases": None},
        {"cases": {}},
        {"cases": "many"},
        {"cases": [None]},
        {"cases": [[]]},
        {"cases": [{}]},
        {"cases": [{"inputs": []}]},
        {"cases": [{"inputs": "none"}]},
        {"cases": [{"inputs": None, "expected": {}}]},
    ],
)
def test_a_malformed_suite_is_refused_by_name(tmp_path: Path, body: object) -> None:
    """Never a traceback, never a silent skip: the file is in the message."""
    write(tmp_path, broken=body)

    with pytest.raises(ReferenceDataError, match=r"broken\.json"):
        read_folder(tmp_path)


def test_the_position_of_a_malformed_case_is_told(tmp_path: Path) -> None:
    """The second of two."""
    write(tmp_path, broken=suite(cases=[CASE, {"name": "no inputs"}]))

    with pytest.raises(ReferenceDataError, match="case 1 "):
        read_folder(tmp_path)


@pytest.mark.parametrize("body", ["", "[]", "{"])
def test_a_malformed_manifest_is_refused_by_name(tmp_path: Path, body: str) -> None:
    """It says what binds, so it cannot be guessed around."""
    write(tmp_path, wilson_ci=suite(), manifest=body)

    with pytest.raises(ReferenceDataError, match=r"manifest\.json"):
        read_folder(tmp_path)


@pytest.mark.parametrize("tolerance", ["abc", None, [1e-9], {}, True, -1e-9, float("nan")])
def test_a_malformed_tolerance_is_refused_by_name(tmp_path: Path, tolerance: object) -> None:
    """As any other malformed part of the file."""
    write(tmp_path, broken=suite(tolerance=tolerance))

    with pytest.raises(ReferenceDataError, match=r"broken\.json"):
        read_folder(tmp_path)


@pytest.mark.parametrize("suites", [["wilson_ci"], {"wilson_ci": "mandatory"}, "wilson_ci"])
def test_a_misshapen_manifest_is_refused_by_name(tmp_path: Path, suites: object) -> None:
    """Valid JSON of another shape."""
    write(tmp_path, wilson_ci=suite(), manifest={"suites": suites})

    with pytest.raises(ReferenceDataError, match=r"manifest\.json"):
        read_folder(tmp_path)


@pytest.mark.parametrize("expected", ["PASS", 3, [1, 2], True])
def test_an_expectation_that_is_not_a_mapping_is_refused(tmp_path: Path, expected: object) -> None:
    """Otherwise the case matches whatever is answered."""
    write(tmp_path, broken=suite(cases=[CASE | {"expected": expected}]))

    with pytest.raises(ReferenceDataError, match=r"broken\.json"):
        read_folder(tmp_path)


def test_a_case_without_an_expectation_is_refused(tmp_path: Path) -> None:
    """`[]` says that nothing is expected; no key says that something was forgotten."""
    write(tmp_path, broken=suite(cases=[{"name": "x", "inputs": CASE["inputs"]}]))

    with pytest.raises(ReferenceDataError, match=r"broken\.json"):
        read_folder(tmp_path)


def test_an_infinite_tolerance_is_refused(tmp_path: Path) -> None:
    """Within it every answer matches."""
    write(tmp_path, broken=suite(tolerance=float("inf")))

    with pytest.raises(ReferenceDataError, match=r"broken\.json"):
        read_folder(tmp_path)
