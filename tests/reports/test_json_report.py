"""The JSON report: what its schema says, no more and no less, and the verdict in full."""

from __future__ import annotations

import json
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any, Literal, SupportsIndex, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from tests.reports.short_reports import render_json
from tests.revising import replace

import trialwise.pages
from trialwise import stats
from trialwise.documents.results import LineKind
from trialwise.errors import InvalidArgument
from trialwise.model.baseline import BaselineReference
from trialwise.model.codec import from_plain
from trialwise.model.evidence import (
    FLAT,
    CutoffEvidence,
    EstimatedEvidence,
    Evidence,
    SequentialEvidence,
    StopReason,
)
from trialwise.model.gate import Metrics, Reliability, Stability
from trialwise.model.metrics import GateFinding
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.model.run import RunRecord
from trialwise.model.trial import ErrorClass, FailReason
from trialwise.model.verdict import Decision, Finding, ProcedureDesign, Verdict
from trialwise.pages.json_report import SCHEMA, describe_report, read_report_schema
from trialwise.procedures.registry import find_procedure
from trialwise.stats.judged_looks import JudgedLook
from trialwise.stats.result_types import RULES, Undefined
from trialwise.stats.sequential.design import SequentialDesign

Made = Callable[[str], list[RunRecord]]
Runs = dict[str, RunRecord]

SHIPPED = Path(trialwise.pages.__file__).parent / "verdict.schema.json"
VALIDATOR = Draft202012Validator(read_report_schema())
HOSTILE = ["\x1b[2J", "\ud800", "\udc00", "\u202e", "\u2028", "\\u0041", '"', "\U000e0041"]
TEXTS = st.text(st.characters(), max_size=40) | st.lists(st.sampled_from(HOSTILE)).map("".join)


def check(text: str) -> dict[str, Any]:
    """The report that a text holds, valid by the shipped schema."""
    report: dict[str, Any] = json.loads(text)
    errors = [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(report)]

    assert [] == errors[:3]
    return report


# --- The schema -------------------------------------------------------------------------------

#: Types that are spelled by one JSON type.
SINGLE: dict[Any, dict[str, Any]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    SupportsIndex: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    types.NoneType: {"type": "null"},
    datetime: {"type": "string", "format": "date-time"},
    Any: {},
    Undefined: {
        "type": "object",
        "additionalProperties": False,
        "required": ["undefined"],
        "properties": {"undefined": {"type": "string"}},
    },
}


#: What the model names for the type checker alone, or spells as a text.
LATER: dict[str, Any] = {name: getattr(stats, name) for name in dir(stats)}
LATER |= {"BaselineReference": BaselineReference, "SequentialDesign": SequentialDesign}
LATER |= {"GateFinding": GateFinding, "Rule": Literal[RULES], "SupportsIndex": SupportsIndex}
LATER |= {one.__name__: one for one in (CriterionPlan, JudgedLook, Plan, ProcedureDesign)}
LATER |= {one.__name__: one for one in (Metrics, Reliability, Stability)}
#: The kinds of evidence that the built-in procedures have.
BUILT_IN = (Evidence, CutoffEvidence, SequentialEvidence, EstimatedEvidence)


def names_of(cls: type) -> dict[str, Any]:
    """What a class's hints name beside what its module holds."""
    module = vars(sys.modules[cls.__module__])
    return {name: one for name, one in LATER.items() if isinstance(module.get(name, ""), str)}


class Definitions(dict[str, Any]):
    """The definitions of dataclasses, made from their type hints as they are met."""

    def of(self, hint: Any) -> dict[str, Any]:
        """The schema of a type."""
        if hint in SINGLE:
            return SINGLE[hint]
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin in (Union, types.UnionType):
            classes = [one for one in arguments if is_dataclass(one) and one is not Undefined]
            tagged = len(classes) > 1
            return {
                "anyOf": [
                    self.record(one, tagged=tagged) if one in classes else self.of(one)
                    for one in arguments
                ]
            }
        if isinstance(origin, type):
            return self.several(origin, arguments)
        if issubclass(hint, Enum):
            return {"enum": [one.value for one in hint]}
        return self.opened(hint) if "kinds" in vars(hint) else self.record(hint)

    def opened(self, base: Any) -> dict[str, Any]:
        """Built-in kinds field by field, and any other that names its class."""
        own = [self.record(one, tagged=True) for one in BUILT_IN if issubclass(one, base)]
        names = [one.__name__ for one in BUILT_IN if issubclass(one, base)]
        other = {
            "type": "object",
            "required": ["type"],
            "properties": {"type": {"type": "string", "not": {"enum": names}}},
        }
        return {"anyOf": [*own, other]}

    def several(self, origin: type, arguments: tuple[Any, ...]) -> dict[str, Any]:
        """The schema of a container."""
        if issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.of(arguments[1])}
        if origin is tuple and arguments[-1] is not Ellipsis:
            ends = {"minItems": len(arguments), "maxItems": len(arguments)}
            return {"type": "array", "prefixItems": [self.of(one) for one in arguments], **ends}
        return {"type": "array", "items": self.of(arguments[0])}

    def record(self, cls: Any, *, tagged: bool = False) -> dict[str, Any]:
        """A reference to the definition of a dataclass; a tagged one names its class."""
        name = cls.__name__
        if name not in self:
            self[name] = {}  # a class may hold its own kind
            self[name] = self.whole(cls, {"type": {"const": name}} if tagged else {})
        assert tagged == ("type" in self[name].get("properties", {"type": 0} if tagged else {}))
        return {"$ref": f"#/$defs/{name}"}

    def whole(self, cls: Any, first: dict[str, Any]) -> dict[str, Any]:
        # A rule set is an alias that exists for type checkers only.
        hints = get_type_hints(cls, localns=names_of(cls))
        if cls is SequentialDesign:  # spells itself: an undefined certificate is null
            hints["certificate"] = float | None
        properties = dict(first)
        for one in fields(cls):
            if one.metadata == FLAT:  # its fields stand beside the others
                properties |= self.whole(hints[one.name], {})["properties"]
            elif one.init:
                properties[one.name] = self.of(hints[one.name])
        whole: dict[str, Any] = {
            "type": "object",
            "additionalProperties": False,
            "required": list(properties),
            "properties": properties,
        }
        return self.referring(whole) if cls is Finding else whole

    def referring(self, finding: dict[str, Any]) -> dict[str, Any]:
        """A finding names its criterion, or holds a plan that is not the verdict's."""
        finding["required"].remove("plan")
        finding["properties"] = {"criterion": {"type": "string"}, **finding["properties"]}
        return finding | {"oneOf": [{"required": ["criterion"]}, {"required": ["plan"]}]}


def fill_choices(own: dict[str, Any]) -> dict[str, Any]:
    """The parts that are not of the model, with every closed set as the code has it."""
    filled: dict[str, Any] = json.loads(json.dumps(own))
    facts, failures = filled["criterion_facts"]["properties"], filled["failures"]["properties"]
    filled["decision"]["enum"] = [*(one.value for one in Decision), None]
    facts["single_decision"]["enum"] = filled["decision"]["enum"]
    # A distribution may add a procedure, so that the set is open.
    facts["procedure"] = {"type": "string", "examples": list_procedures()}
    facts["stop"] = {"enum": [*(one.value for one in StopReason), None]}
    failures["reason"]["enum"] = [one.value for one in FailReason]
    failures["error_class"]["enum"] = [one.value for one in ErrorClass]
    kinds = [one.value for one in LineKind if one is not LineKind.REPORTED]
    filled["result"]["properties"]["kind"]["enum"] = kinds
    return filled


def list_procedures() -> list[str]:
    """The names of the built-in procedures, as a refusal of any other tells them."""
    with pytest.raises(InvalidArgument) as caught:
        find_procedure("NONE")
    return caught.value.allowed.removeprefix("be one of ").split(", ")


def test_the_shipped_schema_describes_the_model_as_it_is() -> None:
    """Every class within a verdict, field by field, as its type hints say.

    `TRIALWISE_GOLDEN=write` brings the shipped file up to date.
    """
    made = Definitions()
    made.of(Verdict)
    shipped = read_report_schema()
    own = {name: one for name, one in shipped["$defs"].items() if name[0].islower()}
    expected = shipped | {"$defs": fill_choices(own) | {name: made[name] for name in sorted(made)}}
    if os.environ.get("TRIALWISE_GOLDEN") == "write":
        SHIPPED.write_text(json.dumps(expected, indent=2) + "\n", encoding="utf-8")

    assert expected == json.loads(SHIPPED.read_text("utf-8"))


@pytest.mark.slow
def test_the_schema_is_one() -> None:
    """It is valid itself, names the version, and leaves no object of ours open."""
    schema = read_report_schema()
    Draft202012Validator.check_schema(schema)
    objects = [schema, *schema["$defs"].values()]
    closed = [one["additionalProperties"] for one in objects if "properties" in one]

    assert SCHEMA == schema["properties"]["schema"]["const"]
    assert {False} == set(closed)


def places(value: Any) -> Iterator[dict[str, Any]]:
    """Every object of a report that is not the model's own."""
    if isinstance(value, dict):
        yield value
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(part, dict | list) and key not in ("verdict", "spending", "criteria"):
            yield from places(part)


@pytest.mark.slow
def test_the_schema_is_strict(suite: list[RunRecord]) -> None:
    """A key too many or too few is an error, wherever in the report it is."""
    report = json.loads(render_json(suite))
    objects = list(places(report))

    assert len(objects) > 30
    for one in objects:
        one["extra"] = 1
        assert not VALIDATOR.is_valid(report)
        del one["extra"]
        key, value = one.popitem()
        assert not VALIDATOR.is_valid(report)
        one[key] = value
    assert VALIDATOR.is_valid(report)


# --- The report -------------------------------------------------------------------------------


def test_the_golden_report(suite: list[RunRecord], golden: Callable[[str, str], None]) -> None:
    """Everything but the verdicts, which the record's own tests cover."""
    text = render_json(suite, name="nightly", locations={"run-1": ".trialwise/runs/run-1"})
    report = check(text)
    for run in report["runs"]:
        del run["verdict"]
    report["tool"]["version"] = "0.0.0"

    golden("report.json", json.dumps(report, indent=2, ensure_ascii=False) + "\n")


def test_the_verdict_can_be_read_back(suite: list[RunRecord]) -> None:
    """It is the record's verdict, field by field."""
    report = check(render_json(suite))
    read = [from_plain(Verdict, run["verdict"]) for run in report["runs"]]

    assert [record.verdict for record in suite] == read


@pytest.mark.parametrize(
    ("names", "decision", "code"),
    [
        (["pass"], "PASS", 0),
        (["pass", "fail"], "FAIL", 1),
        (["fail", "refused"], "FAIL", 1),
        (["pass", "refused"], None, 2),
    ],
)
def test_the_suite_is_as_its_worst_contract(
    runs: Runs, names: list[str], decision: str | None, code: int
) -> None:
    """FAIL beats a refusal, which leaves the suite without a decision."""
    report = check(render_json([runs[name] for name in names]))

    assert (decision, code) == (report["decision"], report["exit_code"])


def test_inconclusive_beats_pass_and_a_refusal_beats_it(runs: Runs) -> None:
    """What was not run is never decided."""
    record = runs["pass"]
    undecided = replace(record, verdict=replace(record.verdict, decision=Decision.INCONCLUSIVE))

    assert 3 == describe_report([record, undecided])["exit_code"]
    assert 2 == describe_report([undecided, runs["refused"]])["exit_code"]


def test_an_interrupted_run_and_a_given_code(runs: Runs) -> None:
    """130 whatever was decided by then; the process may know better."""
    record = runs["fail"]
    stopped = replace(record, verdict=replace(record.verdict, stop=StopReason.INTERRUPTED))

    assert 130 == describe_report([stopped])["exit_code"]
    assert 4 == describe_report([stopped], exit_code=4)["exit_code"]


def test_the_envelopes_are_of_achieved_errors(suite: list[RunRecord]) -> None:
    """A wrong PASS is as likely as the largest single one, a wrong FAIL as all together."""
    found = {one["error"]: one for one in describe_report(suite)["envelopes"]}

    assert ["wrong-pass", "wrong-fail"] == list(found)
    assert ["valid-json", "grounded", "books"] == found["wrong-pass"]["counted"]
    assert ["no-pii"] == [one["name"] for one in found["wrong-pass"]["not_counted"]]
    assert found["wrong-pass"]["raw"] < 0.25
    # By Wilson's rule whatever is not shown FAILs, which a service at the required rate does in
    # more than nine of ten runs. The sum bounds nothing, and the largest is stated.
    assert found["wrong-fail"]["raw"] is None
    assert 0.9 < found["wrong-fail"]["at_least"] < 1
    assert not found["wrong-fail"]["is_exact"]


def test_many_contracts_do_not_pass_a_bad_one_more_often(runs: Runs) -> None:
    """Twenty-one compliance criteria have the error of one: all of them must PASS."""
    one = describe_report([runs["pass"]])["envelopes"][0]
    many = describe_report([runs["pass"]] * 21)["envelopes"][0]

    assert one["raw"] == many["raw"] < 0.1
    assert (one["is_exact"], many["is_exact"]) == (True, False)


def test_failures_are_told_by_reason(runs: Runs) -> None:
    """Ten wrong amounts differ in their numbers only; two trials timed out."""
    (_, grounded, *_) = describe_report([runs["fail"]])["runs"][0]["results"]
    found = [(one["count"], one["reason"], one["trial"]) for one in grounded["failures"]]

    assert [(10, "condition", 3), (2, "no-value", 61)] == found
    assert "expected at most 24.9, found 252" == grounded["failures"][0]["explanation"]
    assert "timed out" == grounded["failures"][1]["explanation"]


def test_inputs_are_counted_criterion_by_criterion(runs: Runs) -> None:
    """Failures of odd trials belong to the second input, of even ones to the first."""
    rows = describe_report([runs["fail"]])["runs"][0]["inputs"]

    assert ["refund", "hours"] == [row["input"] for row in rows]
    assert [50, 50] == [row["trials"] for row in rows]
    assert [1, 1] == [row["errors"] for row in rows]
    assert [49, 39] == [row["criteria"]["grounded"]["passed"] for row in rows]
    assert [49, 50] == [row["criteria"]["valid-json"]["passed"] for row in rows]


def test_trials_after_a_decision_are_counted(runs: Runs) -> None:
    """A criterion that was settled after 40 trials has the failures after them too."""
    record = runs["fail"]
    first, second, *rest = record.verdict.findings
    settled = replace(second, tally=replace(second.tally, trials=40, passed=36))
    verdict = replace(record.verdict, findings=(first, settled, *rest))
    run = describe_report([replace(record, verdict=verdict)])["runs"][0]

    assert [10, 2] == [one["count"] for one in run["results"][1]["failures"]]
    assert 100 == sum(row["criteria"]["grounded"]["trials"] for row in run["inputs"])
    assert 100 == sum(row["trials"] for row in run["inputs"])


def test_nothing_run_is_no_report() -> None:
    """An empty list of runs is refused, not reported as a pass."""
    with pytest.raises(InvalidArgument, match="what was not run is never PASS"):
        render_json([])


@pytest.mark.slow
@given(TEXTS)
def test_any_text_gives_a_valid_report(marked: Made, text: str) -> None:
    """UTF-8, valid by the schema, without a raw control character, read back as it was."""
    records = marked(text)
    rendered = render_json(records)
    report = check(rendered.encode("utf-8").decode("utf-8"))
    shown = "".join(rf"\u{ord(one):04x}" if "\ud800" <= one <= "\udfff" else one for one in text)

    assert all(one.isprintable() or one == "\n" for one in rendered)
    assert f"support-agent{shown}" == report["runs"][0]["contract"]


def test_the_same_records_give_the_same_text(marked: Made) -> None:
    """Nothing is taken from a clock, an environment or the order of a set."""
    assert render_json(marked("")) == render_json(marked(""))
