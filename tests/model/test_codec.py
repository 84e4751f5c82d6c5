"""The nouns as JSON: what comes back is what was written, and a misfit is named by its place."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum, StrEnum
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, SupportsIndex, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.procedures.decided_counts import decide_latency_baseline, decide_latency_limit
from tests.revising import replace

from trialwise import model, stats
from trialwise.errors import InvalidArgument
from trialwise.model.baseline import Baseline, CriterionBaseline
from trialwise.model.claim import Claim, Intent, PopulationClaim
from trialwise.model.codec import from_plain, to_plain
from trialwise.model.contract import Prevalence
from trialwise.model.evidence import (
    CutoffEvidence,
    EstimatedEvidence,
    Evidence,
    Guard,
    SequentialEvidence,
    Severity,
    StopReason,
    Tally,
    Threshold,
)
from trialwise.model.fingerprint import hash_plain_plan, plan_differences, plan_hash
from trialwise.model.gate import Expectation, Metrics, Reliability, Stability
from trialwise.model.matcher import AllOf, AnyOf, Exact, Not, NoWorse, NumberSchema, may_hold
from trialwise.model.options import AbortRule, Budget, RunOptions
from trialwise.model.plan import CriterionPlan, ExperimentPlan, Plan
from trialwise.model.reply import Usage
from trialwise.model.trial import Analysis, CheckResult, Trial
from trialwise.model.verdict import (
    Decision,
    Dimension,
    Finding,
    LatencyFinding,
    ProcedureDesign,
    Verdict,
)
from trialwise.procedures.compliance import decide_compliance
from trialwise.procedures.observational import decide_observational
from trialwise.procedures.regression import decide_regression
from trialwise.stats import sequential
from trialwise.stats.cluster_estimators import Stratum, stratum_weighted
from trialwise.stats.finite import exact_corpus_rate
from trialwise.stats.result_types import Interval, Undefined
from trialwise.stats.sequential import SequentialDesign

RULE = Literal["wilson", "exact"]
LATER = {
    "model": model,
    "stats": stats,
    "sequential": sequential,
    "Rule": RULE,
    "SupportsIndex": SupportsIndex,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnDesign(ProcedureDesign):
    """The design of a procedure that another distribution declares."""

    levels: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnEvidence(Evidence):
    """The evidence of such a procedure."""

    odds: float = 1.0


DESIGNS = [
    SequentialDesign.wald(0.9, cap=50),
    SequentialDesign.fixed(0.9, 0.8),
    SequentialDesign.optimal(0.9, 0.8, cap=50),
]

EVIDENCE = (Evidence, CutoffEvidence, SequentialEvidence, EstimatedEvidence, OwnEvidence)

# --- Any value of the model -------------------------------------------------------------------

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(max_size=8)
NAMES = st.text(min_size=1, max_size=8).filter(str.strip)
OPEN = st.floats(0.01, 0.99)
MOMENTS = st.datetimes(
    datetime(1980, 1, 1),
    datetime(2900, 1, 1),
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))]),
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=4,
)


@st.composite
def tallies(draw: st.DrawFn) -> Tally:
    passed = draw(st.integers(0, 1000))
    evaluable = passed + draw(st.integers(0, 1000))
    trials = evaluable + draw(st.integers(0, 1000))
    return Tally(trials=trials, passed=passed, evaluable=draw(st.sampled_from([None, evaluable])))


@st.composite
def observed(draw: st.DrawFn) -> CriterionBaseline:
    passed, condition, transform, no_value = draw(st.tuples(*[st.integers(1, 99)] * 4))
    return CriterionBaseline(
        trials=passed + condition + transform + no_value,
        passed=passed,
        condition=condition,
        transform=transform,
        no_value=no_value,
        structure=draw(NAMES),
        postconditions=tuple(draw(st.lists(TEXTS, max_size=2))),
    )


POSITIVE = st.floats(0.001, 1000.0)
BUDGETS = st.builds(
    Budget,
    trials=st.none() | st.integers(1, 10_000_000),
    seconds=st.none() | POSITIVE,
    tokens=st.none() | st.integers(1, 10_000_000),
    usd=st.none() | POSITIVE | st.integers(1, 9),
)
ABORTS = st.builds(
    AbortRule,
    max_error_rate=st.floats(0, 1),
    after=st.integers(1, 10_000_000),
    to_fail=st.booleans(),
)
OPTIONS = st.builds(
    RunOptions,
    trials=st.none()
    | st.integers(1, 10_000_000)
    | st.dictionaries(TEXTS, st.integers(1, 10_000_000)),
    intent=st.sampled_from(Intent),
    rule=st.sampled_from(["wilson", "exact"]),
    analysis=st.sampled_from(Analysis),
    seed=st.none() | st.integers(),
    draw=st.sampled_from([None, "balanced", "independent"]),
    concurrency=st.integers(1, 10_000_000),
    rate_per_s=st.none() | POSITIVE,
    timeout_s=st.none() | POSITIVE,
    retries=st.integers(0),
    budget=BUDGETS,
    abort=ABORTS,
    curtail=st.booleans(),
    overrides=st.lists(TEXTS, max_size=2),
    baseline=st.none() | TEXTS,
    horizon=st.none() | st.integers(1, 10_000_000),
) | st.builds(RunOptions, max_trials=st.integers(1, 10_000_000))
CLAIMS = st.builds(
    Claim,
    population=st.sampled_from(PopulationClaim),
    population_name=NAMES,
    representativeness=TEXTS,
)
LATENCIES = st.dictionaries(
    NAMES, st.lists(POSITIVE, max_size=4).map(lambda some: tuple(sorted(some))), max_size=2
)
BASELINES = st.builds(
    Baseline,
    identifier=NAMES,
    contract=NAMES,
    created_at=MOMENTS,
    criteria=st.dictionaries(TEXTS, observed(), min_size=1, max_size=2),
    covariates=st.dictionaries(TEXTS, TEXTS, max_size=2),
    claim=CLAIMS,
    latencies_s=LATENCIES,
    valid_days=st.none() | POSITIVE,
    grace_days=st.floats(0, 100),
    epoch=st.integers(1, 99),
)
MATCHERS = st.recursive(
    st.builds(Exact, value=NUMBERS) | st.builds(NumberSchema, minimum=NUMBERS),
    lambda inner: (
        st.builds(Not, matcher=inner)
        | st.builds(AllOf, matchers=st.tuples(inner, inner))
        | st.builds(AnyOf, matchers=st.tuples(inner))
    ),
    max_leaves=3,
)
#: Those that a share can meet.
MET = MATCHERS.filter(lambda matcher: may_hold(matcher, least=0, most=1))


def expectations(*targets: str) -> st.SearchStrategy[Any]:
    return st.lists(
        st.builds(Expectation, target=st.sampled_from(targets), matcher=MET), max_size=2
    )


CHECKED: dict[Any, st.SearchStrategy[Any]] = {
    **dict.fromkeys((Exact, NumberSchema, Not, AllOf, AnyOf), MATCHERS),
    Reliability: st.builds(
        Reliability, expect=expectations("reliability.runs"), criterion=st.none() | NAMES
    ),
    Stability: st.builds(
        Stability, expect=expectations("stability.score"), exclude=st.just(("redundancy",))
    ),
    Metrics: st.builds(
        Metrics,
        expect=expectations("metrics.pass_hat.3", "metrics.flaky"),
        k=st.lists(st.integers(1, 9), max_size=3),
        weights=st.dictionaries(TEXTS, POSITIVE, max_size=2),
        sampling=st.none() | NAMES,
    ),
    Tally: tallies(),
    Claim: CLAIMS,
    RunOptions: OPTIONS,
    Baseline: BASELINES,
    Prevalence: st.builds(
        Prevalence,
        rate=st.floats(0, 1),
        confidence=st.none() | OPEN,
        source=st.just("pre-guardrail"),
        evidence=TEXTS,
    ),
    SequentialDesign: st.sampled_from(DESIGNS),
    CheckResult: st.sampled_from([CheckResult.ok(), CheckResult.fail("no", evidence="é\n\x00")]),
    stats.Confusion: st.builds(
        stats.Confusion,
        true_pass=st.integers(1, 10_000_000),
        false_pass=st.integers(0),
        true_fail=st.integers(0),
        false_fail=st.integers(0),
    ),
    NoWorse: st.deferred(lambda: of_fields(NoWorse, margin=st.integers(0, 5))),
    Usage: st.builds(Usage, input_tokens=st.integers(0), output_tokens=st.integers(0)),
    ProcedureDesign: st.builds(OwnDesign, levels=st.tuples(NUMBERS)),
    Evidence: st.deferred(lambda: st.one_of([of_fields(one) for one in EVIDENCE])),
    # Deeper than one level adds nothing but size.
    Finding: st.deferred(lambda: of_fields(Finding, by_input=st.just(()))),
    bool: st.booleans(),
    int: st.integers(),
    SupportsIndex: st.integers(),
    float: NUMBERS | st.integers(-5, 5),
    str: TEXTS,
    NoneType: st.none(),
    datetime: MOMENTS,
    Any: PLAIN,
}


def of_fields(cls: type, **given_fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Any value of a dataclass whose fields do not restrict one another."""
    hints = get_type_hints(cls, localns=LATER)
    parts = {one.name: any_of(hints[one.name]) for one in fields(cls) if one.init}
    return st.builds(cls, **{**parts, **given_fields})


@cache
def any_of(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a declared type."""
    if hint in CHECKED:
        return CHECKED[hint]
    if get_origin(hint) is not None:
        return any_composed(get_origin(hint), get_args(hint))
    if issubclass(hint, Enum):
        return st.sampled_from(hint)
    return of_fields(hint)


def any_composed(origin: Any, arguments: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    """Any value of a type that is put together from others."""
    if origin is Literal:
        return st.sampled_from(arguments)
    parts = [any_of(one) for one in arguments if one is not Ellipsis]
    if origin in (Union, UnionType):
        return st.one_of(*parts)
    if origin is frozenset:
        return st.frozensets(parts[0])
    if issubclass(origin, Mapping):
        return st.dictionaries(TEXTS, parts[1], max_size=2)
    assert origin is tuple
    whole = arguments[-1] is Ellipsis
    return st.lists(parts[0], max_size=2).map(tuple) if whole else st.tuples(*parts)


def exactly(value: Any) -> Any:
    """A value in a form that is equal only for the same types, bits and uncompared fields."""
    if is_dataclass(value) and not isinstance(value, type):
        parts = {one.name: exactly(getattr(value, one.name)) for one in fields(value)}
        return type(value), parts
    if isinstance(value, Mapping):
        return "mapping", {key: exactly(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return type(value), [exactly(one) for one in value]
    return type(value), value.hex() if isinstance(value, float) else value


def returned(value: Any) -> Any:
    """A value written as JSON text and read back."""
    return from_plain(type(value), json.loads(json.dumps(to_plain(value), allow_nan=False)))


@pytest.mark.slow("Verdict", "Plan", "Finding")
@pytest.mark.parametrize("cls", [Verdict, Plan, Baseline, RunOptions, Claim, Finding, Trial])
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_is_written_comes_back_exactly(cls: type, data: st.DataObject) -> None:
    """Types, bits and the fields that comparison leaves out, through the text of JSON."""
    value = data.draw(any_of(cls))

    assert exactly(value) == exactly(returned(value))
    assert value == returned(value)


@given(value=NUMBERS | st.integers())
def test_numbers_keep_every_bit_and_whole_ones_stay_whole(value: float) -> None:
    """0.1 + 0.2, −0.0 and the smallest double; and 1 does not become 1.0."""
    back = returned(Interval(value, value)).low

    assert exactly(value) == exactly(back)


# --- Real findings ----------------------------------------------------------------------------

COUNTS = Tally(trials=100, passed=97, evaluable=99)
STRATA = [
    Stratum(name="easy", weight=0.8, successes=50, trials=50),
    Stratum(name="hard", weight=0.2, successes=30, trials=50),
]


@cache
def real_findings() -> list[Finding]:
    """One of every procedure and rule, decided and refused."""
    found = [
        decide_observational("pii", COUNTS),
        decide_observational("pii", Tally(trials=0, passed=0)),
    ]
    for rule in RULE.__args__:  # type: ignore[attr-defined]
        for tally in (COUNTS, Tally(trials=3, passed=3)):
            found.append(decide_compliance("json", tally, 0.9, rule=rule))
            found.append(
                decide_regression("json", tally, Tally(trials=1000, passed=951), rule=rule)
            )
        found.append(decide_regression("json", COUNTS, Tally(trials=50, passed=50), rule=rule))
    sequential = replace(
        found[0],
        procedure="SEQUENTIAL",
        design=DESIGNS[2],
        interval=DESIGNS[2].interval(13, 0),
        estimate=DESIGNS[2].estimate(13, 0),
    )
    weighted = replace(sequential, estimator=stratum_weighted(STRATA), by_input=tuple(found[:3]))
    corpus = replace(found[0], design=exact_corpus_rate(9, 10))
    return [*found, sequential, weighted, corpus]


@cache
def real_latencies() -> list[LatencyFinding]:
    quick, slow = [0.4] * 99 + [0.6], [0.5] * 200
    found = []
    for rule in RULE.__args__:  # type: ignore[attr-defined]
        found.append(decide_latency_limit("p95", quick, 0.95, 0.5, rule=rule))
        found.append(decide_latency_limit("p99", quick[:3], 0.99, 0.5, rule=rule, planned_trials=3))
        found.append(decide_latency_baseline("p95", quick, slow, 0.95, rule=rule))
    return found


def test_what_the_procedures_find_comes_back_exactly() -> None:
    """Every rule's own result, refusals and undefined quantities included."""
    verdict = Verdict(
        decision=Decision.INCONCLUSIVE,
        findings=tuple(real_findings()),
        latency=tuple(real_latencies()),
        advisory=frozenset(Dimension),
        started_at=datetime(2026, 11, 15, 6, 25, 24, 123456, UTC),
    )
    verdict = replace(verdict, covariates=MappingProxyType({"region": "eu"}))

    assert {"ComplianceCutoff", "RegressionCutoff", "SequentialDesign", "ExactCorpusRate"} == {
        type(one.design).__name__ for one in verdict.findings if one.design is not None
    }
    assert exactly(verdict) == exactly(returned(verdict))


def test_a_verdict_holds_its_plan_once_and_as_the_plan_alone_is_written() -> None:
    """Findings name their criterion; and whoever hashes the plain plan does not change it."""
    findings = (real_findings()[0], real_findings()[2])
    plan = replace(PLAN, criteria=tuple(one.plan for one in findings))
    verdict = Verdict(decision=Decision.PASS, findings=findings, plan=plan)
    plain = to_plain(plan)

    hash_plain_plan(plain)

    assert to_plain(verdict)["plan"] == plain == to_plain(plan)
    assert [None, None] == [one.get("plan") for one in to_plain(verdict)["findings"]]


def test_what_comparison_leaves_out_is_kept() -> None:
    """How an interval was made is part of the record."""
    interval = Interval(0.25, 0.75, confidence=0.95, method="wilson")
    back = returned(replace(real_findings()[0], interval=interval)).interval

    assert (0.95, "wilson") == (back.confidence, back.method)


def test_every_field_is_written_under_its_name() -> None:
    """Defaults too; a class is named only where several are possible."""
    plain = to_plain(decide_compliance("json", COUNTS, 0.9, rule="wilson"))

    assert [one.name for one in fields(Finding)] == list(plain)
    assert "ComplianceCutoff" == plain["plan"]["design"]["type"]
    assert "CutoffEvidence" == plain["evidence"]["type"]
    assert {"trials": 100, "passed": 97, "evaluable": 99} == plain["tally"]
    assert plain["evidence"]["interval"] is None


def test_an_undefined_quantity_gives_its_reason() -> None:
    """Not null, and not a number."""
    plain = to_plain(exact_corpus_rate(9, 10))

    assert ["undefined"] == list(plain["interval"])
    assert isinstance(returned(exact_corpus_rate(9, 10)).interval, Undefined)


def test_a_field_added_later_takes_its_default() -> None:
    """A record written before the class grew is still read."""
    plain = to_plain(decide_compliance("json", COUNTS, 0.9, rule="wilson"))
    del plain["words"]["label"], plain["by_input"], plain["counts"], plain["plan"]["design"]

    finding = from_plain(Finding, plain)

    assert ("", (), None) == (finding.label, finding.by_input, finding.breakdown)
    assert finding.design is None


# --- Misfits ----------------------------------------------------------------------------------


def verdict_with(place: list[Any], value: Any) -> dict[str, Any]:
    """The plain form of a real verdict with one part put in the place of another."""
    verdict = Verdict(
        decision=None, findings=tuple(real_findings()), latency=tuple(real_latencies())
    )
    if place[0] == "plan":
        verdict = replace(verdict, covariates={})
    plain: dict[str, Any] = to_plain(verdict)
    part: Any = plain
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = value
    return plain


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (["findings", 2, "tally", "passed"], "3", r"findings\[2\]\.tally\.passed .*whole .*'3'"),
        (["findings", 2, "tally", "passed"], True, r"passed must be a whole number, got True"),
        (["findings", 2, "tally", "passed"], 3.0, r"passed must be a whole number, got 3.0"),
        (["findings", 2, "tally", "passed"], 101, r"passed must lie between 0 and 100, got 101"),
        (["findings", 2, "tally"], {"trials": 1}, r"findings\[2\]\.tally must hold 'passed'"),
        (["findings", 2, "tally"], [], r"tally must be a mapping of the fields of Tally"),
        (["findings", 2, "decision"], "MAYBE", r"decision must be one of 'PASS', 'FAIL'"),
        (["findings", 2, "decision"], {}, r"decision must be a text or null"),
        (
            ["findings", 2, "plan", "rule"],
            "bayes",
            r"rule must be one of 'exact', 'wilson', 'fisher', got 'bayes'",
        ),
        (
            ["findings", 2, "plan", "design", "type"],
            "Guess",
            r"design\.type must be one of Compliance",
        ),
        (
            ["findings", 2, "plan", "design", "type"],
            ["x"],
            r"design\.type must be one of Compliance",
        ),
        (
            ["findings", 2, "plan", "design", "cutoff"],
            "9",
            r"findings\[2\]\.plan\.design\.cutoff must",
        ),
        (["findings", 2, "plan", "design"], 7, r"design must be a mapping or null"),
        (["findings", 2, "plan", "alpha"], float("nan"), r"alpha must be a finite number, got nan"),
        (["findings", 2, "plan", "caveats"], "none", r"caveats must be a list"),
        (["findings", 2, "plan", "caveats"], ["a", 1], r"caveats\[1\] must be a text, got 1"),
        (["findings", 2, "colour"], "red", r"colour must not be there: Finding has no such field"),
        (["findings", -3, "evidence", "design", "cap"], -1, r"design\.cap must be a whole number"),
        (
            ["findings", -3, "evidence", "design", "accept"],
            1,
            r"design\.accept must be a list of whole",
        ),
        (["findings", -3, "evidence", "design", "mix"], 3, r"design"),
        (["findings", -2, "by_input", 1, "tally"], None, r"by_input\[1\]\.tally must be a mapping"),
        (["findings", -1, "evidence", "design", "interval"], {}, r"interval must be undefined"),
        (["latency", 0, "evidence", "trials"], "?", r"latency\[0\]\.evidence\.trials must be"),
        (["started_at"], "yesterday", r"verdict\.started_at must be a date and time such as 2026"),
        (["plan", "covariates"], [], r"covariates must be a mapping"),
        (["plan", "covariates"], {"region": 7}, r"plan\.covariates\['region'\] must be a text"),
        (
            ["plan", "claim", "population"],
            "superpopulation",
            r"claim\.population_name must name the",
        ),
        (["advisory"], ["speed"], r"advisory\[0\] must be one of 'functional', 'latency'"),
        pytest.param(
            ["spending", "trials"],
            10**5000,
            r"spending\.trials must be a whole .*digits",
            id="huge",
        ),
    ],
)
def test_a_misfit_is_named_by_its_place_and_what_was_expected(
    place: list[Any], value: Any, message: str
) -> None:
    """As deep as it lies; the message does not hold the record."""
    with pytest.raises(InvalidArgument, match=message) as caught:
        from_plain(Verdict, verdict_with(place, value))

    assert str(caught.value).startswith("verdict.")
    assert len(str(caught.value)) < 400
    assert str(caught.value) == str(pickle.loads(pickle.dumps(caught.value)))


def places(part: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something stands in plain values."""
    steps = part if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else ()
    return [place, *(inner for step in steps for inner in places(part[step], (*place, step)))]


PLACES = places(to_plain(Verdict(decision=None, findings=tuple(real_findings()))))[1:]


@pytest.mark.slow
@settings(max_examples=300)
@given(place=st.sampled_from(PLACES), value=PLAIN)
def test_whatever_stands_wherever_is_read_or_refused(place: tuple[Any, ...], value: Any) -> None:
    """A damaged record never ends in another error."""
    plain = verdict_with([*place], value)
    with suppress(InvalidArgument):
        verdict = from_plain(Verdict, plain)
        assert exactly(verdict) == exactly(returned(verdict))


@pytest.mark.parametrize("data", [None, 3, "x", [], {}, {"decision": None}])
def test_something_else_altogether_is_refused(data: Any) -> None:
    """Whatever JSON a file may hold."""
    with pytest.raises(InvalidArgument, match=r"^verdict must "):
        from_plain(Verdict, data)


@pytest.mark.parametrize(
    ("finding", "message"),
    [
        ({"alpha": float("inf")}, r"finding\.plan\.alpha must be a finite number, got inf"),
        ({"tally": None}, r"finding\.tally must be a Tally"),
        ({"notes": ["a list"]}, r"finding\.notes must be a tuple"),
        (
            {"design": Tally(trials=1, passed=1)},
            r"finding\.evidence\.design must be one of ComplianceCutoff",
        ),
        ({"statement": b"bytes"}, r"finding\.words\.statement must be a text"),
        ({"rule": "bayes"}, r"finding\.plan\.rule must be one of 'exact', 'wilson', 'fisher'"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(finding: Any, message: str) -> None:
    """The writer is as strict as the reader."""
    value = replace(decide_compliance("json", COUNTS, 0.9, rule="wilson"), **finding)
    with pytest.raises(InvalidArgument, match=message):
        to_plain(value)


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Bag:
    content: Any
    label: str = ""
    pair: tuple[int, Colour] = (1, Colour.RED)


@pytest.mark.parametrize(
    "content", [(1,), {1: 2}, {None: 2}, {"a": [b"x"]}, object(), float("nan")]
)
def test_what_is_declared_as_anything_must_be_plain_already(content: Any) -> None:
    """An input that JSON would change is refused where it stands."""
    with pytest.raises(InvalidArgument, match=r"bag\.content.* must be plain JSON: this is"):
        to_plain(Bag(content))


def test_a_choice_given_by_its_text_and_a_text_given_by_its_choice_are_one() -> None:
    """Both spell the same JSON."""
    assert to_plain(Bag(None, Colour.RED)) == to_plain(Bag(None, "red", (1, "red")))  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"bag\.pair must be a list of 2"):
        from_plain(Bag, {"content": None, "pair": [1]})
    with pytest.raises(InvalidArgument, match=r"bag\.pair must be a tuple of 2"):
        to_plain(Bag(None, pair=(1,)))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Blurred:
    either: Mapping[str, int] | Tally
    text: str | Colour = ""


@dataclass(frozen=True)
class Opaque:
    content: list[int]


@pytest.mark.parametrize("value", [Blurred({}), Opaque([]), object()])
def test_a_type_without_a_plain_form_is_an_error_of_the_programmer(value: object) -> None:
    """Found at the first use, not in a record that cannot be read."""
    with pytest.raises(TypeError, match=r"apart|no plain form"):
        to_plain(value)


# --- Which plan it is -------------------------------------------------------------------------

EXPERIMENT = ExperimentPlan(
    name="inputs",
    identifier="inputs",
    fingerprint="f1",
    input_ids=("1", "2"),
    repetitions=(1, 1),
    trials=100,
    draw="balanced",
    sampling_mode="with-replacement",  # type: ignore[arg-type]
)
CRITERION = CriterionPlan(
    criterion="json",
    experiment="inputs",
    procedure="COMPLIANCE",
    rule="wilson",
    decision_rule="compliance/wilson-lower-bound",
    alpha=0.05,
    trials=100,
    cutoff=95,
    threshold=Threshold(required_rate=0.9),
)
PLAN = Plan(
    contract="support-agent",
    seed=7,
    intent=Intent.VERIFICATION,
    rule="wilson",
    analysis=Analysis.INTENT_TO_TREAT,
    claim=Claim(),
    options=RunOptions(trials=100, timeout_s=30),
    experiments=(EXPERIMENT,),
    criteria=(CRITERION,),
    structure={"json": "s1", "pii": "s2"},
    covariates={"region": "eu"},
    factors={"model": "small"},
)


def options(**changed: Any) -> dict[str, Any]:
    return {"options": replace(PLAN.options, **changed)}


def experiment(**changed: Any) -> dict[str, Any]:
    return {"experiments": (replace(EXPERIMENT, **changed),)}


def criterion(**changed: Any) -> dict[str, Any]:
    return {"criteria": (CRITERION.change(**changed),)}


@pytest.mark.parametrize(
    "changed",
    [
        options(concurrency=8, rate_per_s=2.0),
        options(budget=Budget(usd=3.0)),
        options(overrides=("expired-baseline",)),
        options(seed=7),
        options(timeout_s=30.0),
        options(horizon=12),
        options(trials=None),
        experiment(description="redacted in May"),
        criterion(caveats=("mind the gap",), category="SAFETY"),
        criterion(threshold=Threshold(required_rate=0.9, contract_ref="SLA 4.3")),
        {"guards": (Guard(code="x", severity=Severity.MINOR, message="careful"),)},
        {"claim": Claim(representativeness="as observed in May")},
        {"structure": {"pii": "s2", "json": "s1"}},
    ],
)
def test_pace_budget_and_wording_do_not_make_another_plan(changed: Any) -> None:
    """A run may go on slower, longer or better described; and equal numbers are equal."""
    other = replace(PLAN, **changed)

    assert plan_hash(PLAN) == plan_hash(other)
    assert () == plan_differences(PLAN, other)


@pytest.mark.parametrize(
    ("changed", "difference"),
    [
        ({"seed": 8}, "seed (seed: 7 there, 8 here)"),
        ({"contract": "other"}, "contract (contract: 'support-agent' there, 'other' here)"),
        ({"intent": Intent.SMOKE}, "intent (intent: 'VERIFICATION' there, 'SMOKE' here)"),
        ({"rule": "exact"}, "rule (rule: 'wilson' there, 'exact' here)"),
        (
            {"analysis": Analysis.PER_PROTOCOL},
            "analysis (analysis: 'intent-to-treat' there, 'per-protocol' here)",
        ),
        (
            {"claim": Claim(population=PopulationClaim.NO_GENERALISATION)},
            "claim (claim.population: 'fixed-inputs' there, 'no-generalisation' here)",
        ),
        (
            experiment(fingerprint="f2"),
            "inputs (experiments[0].fingerprint: 'f1' there, 'f2' here)",
        ),
        (
            experiment(input_ids=("1",), repetitions=(1,)),
            "inputs (experiments[0].input_ids: ['1', '2'] there, ['1'] here)",
        ),
        (criterion(alpha=0.1), "criteria (criteria[0].alpha: 0.05 there, 0.1 here)"),
        (
            {"structure": {"json": "s1", "pii": "s3"}},
            "postconditions (structure.pii: 's2' there, 's3' here)",
        ),
        (
            {"factors": {"model": "large"}},
            "what is under test (factors.model: 'small' there, 'large' here)",
        ),
        ({"covariates": {}}, "covariates (covariates: {'region': 'eu'} there, {} here)"),
        (options(timeout_s=31), "options (options.timeout_s: 30 there, 31 here)"),
        (options(retries=1), "options (options.retries: 2 there, 1 here)"),
        (
            options(abort=AbortRule(to_fail=True)),
            "options (options.abort.to_fail: False there, True here)",
        ),
        ({"purpose": "measure"}, "purpose (purpose: 'test' there, 'measure' here)"),
    ],
)
def test_what_determines_trials_or_decisions_makes_another_plan(
    changed: Any, difference: str
) -> None:
    """And it can be said what."""
    other = replace(PLAN, **changed)

    assert plan_hash(PLAN) != plan_hash(other)
    assert (difference,) == plan_differences(PLAN, other)


def test_a_hash_is_sixteen_characters_and_survives_the_file() -> None:
    """The plan that was read back is the plan that was written."""
    assert 16 == len(plan_hash(PLAN))
    assert plan_hash(PLAN) == plan_hash(returned(PLAN))
    assert StopReason.COMPLETE is returned(Verdict(decision=None, findings=())).stop
