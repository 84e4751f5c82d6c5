"""Deciding a stored run again: an honest record holds, and every altered field is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.revising import replace

import trialwise as tw
from trialwise.model.codec import from_plain, to_plain
from trialwise.model.evidence import Threshold
from trialwise.model.plan import Plan
from trialwise.model.reply import Setup
from trialwise.model.run import RunRecord
from trialwise.model.trial import CheckResult, ErrorClass
from trialwise.model.verdict import Verdict
from trialwise.procedures import regression_designs
from trialwise.runtime.verifying import verify
from trialwise.stats.staged_regression import apply_scheme, find_level

QUESTIONS = ["one", "two", "three"]


def flaky(question: str, seed: int) -> str:
    """Right in nine of ten trials."""
    return "wrong" if Random(seed).random() < 0.1 else f"right: {question}"


def paid(question: str, seed: int) -> tw.Reply:
    """As flaky, with tokens, money and a setup; a float sum of its costs is not exact."""
    return tw.Reply(
        value=flaky(question, seed),
        usage=tw.Usage(input_tokens=seed % 97, output_tokens=11),
        cost_usd=0.1 + (seed % 7) / 1000,
        setup=Setup(seconds=0.1, usage=tw.Usage(input_tokens=3), cost_usd=0.01),
    )


def unreachable(seed: int) -> str:
    """Gone in most trials; it may be asked again at once."""
    if Random(seed).random() < 0.9:
        gone = tw.ServiceError("nobody there", ErrorClass.INFRASTRUCTURE)
        gone.retry_after_s = 0.0
        raise gone
    return "right"


def right(**question: Any) -> tw.Criterion:
    return tw.Criterion("right", tw.contains("right"), **question)


def contract(
    service: Callable[..., Any] = flaky, *criteria: tw.Criterion, **more: Any
) -> tw.Contract:
    return tw.Contract("verified", service, criteria or (right(at_least=0.7),), **more)


def run(one: tw.Contract, **settings: Any) -> RunRecord:
    usual: dict[str, Any] = {"inputs": QUESTIONS, "seed": 5, "store": None, "progress": False}
    return tw.run(one, **(usual | settings)).record


def regression(trials: int | None = 60, **settings: Any) -> RunRecord:
    """A run held against a baseline that was measured just before."""
    import tempfile

    one = contract(flaky, right(no_worse_than="baseline"))
    with tempfile.TemporaryDirectory() as folder:
        given: dict[str, Any] = {
            "inputs": QUESTIONS,
            "baselines": folder,
            "store": None,
            "progress": False,
        }
        tw.measure(one, trials=120, seed=3, **given)
        return run(one, baselines=folder, trials=trials, **settings)


#: Every procedure, every way in which a run ends.
RECORDS: dict[str, Callable[[], RunRecord]] = {
    "sequential": lambda: run(contract()),
    "easier": lambda: run(contract(flaky, right(at_least=0.5))),
    "wald": lambda: run(contract(flaky, right(at_least=0.7, margin=0.1, method="wald"))),
    "side by side": lambda: run(contract(), concurrency=4),
    "capped": lambda: run(contract(flaky, right(at_least=0.88, max_trials=30)), seed=9),
    "fixed": lambda: run(contract(), trials=50, curtail=False),
    "fixed exact": lambda: run(contract(), trials=50, rule="exact", curtail=False),
    "curtailed": lambda: run(contract(flaky, right(at_least=0.99)), trials=400),
    "regression": regression,
    "regression exact": lambda: regression(rule="exact"),
    "staged regression": lambda: regression(None),
    "staged regression, limited": lambda: regression(None, max_trials=50),
    "observational": lambda: run(contract(flaky, right(never_fails=True)), trials=20),
    "each input": lambda: run(contract(flaky, right(at_least=0.6, each_input=True))),
    "two criteria": lambda: run(
        contract(
            flaky,
            right(at_least=0.7),
            tw.Criterion("short", tw.length(maximum=30), at_least=0.9),
            tw.Criterion("polite", tw.not_contains("fool"), never_fails=True),
        )
    ),
    "corpus": lambda: run(
        contract(claim=tw.model.Claim(population=tw.model.PopulationClaim.FINITE_CORPUS)),
        inputs=[str(n) for n in range(40)],
    ),
    "no claim": lambda: run(
        contract(claim=tw.model.Claim(population=tw.model.PopulationClaim.NO_GENERALISATION))
    ),
    "latency": lambda: run(
        contract(latency=tw.Latency.within(p95=60.0, enforced=True)), trials=120
    ),
    "paid": lambda: run(contract(paid)),
    "out of money": lambda: run(contract(paid), budget=tw.Budget(usd=0.5)),
    "out of trials": lambda: run(contract(), budget=tw.Budget(trials=4)),
    "aborted": lambda: run(contract(unreachable)),
    "aborted to FAIL": lambda: run(contract(unreachable), abort=tw.model.AbortRule(to_fail=True)),
    "per protocol": lambda: run(
        contract(unreachable), analysis="per-protocol", abort=tw.model.AbortRule(max_error_rate=1.0)
    ),
    "retried": lambda: run(contract(unreachable), retries=1, abort=tw.model.AbortRule(after=3)),
    "smoke": lambda: run(contract(flaky, right(at_least=0.9)), trials=5, intent="smoke"),
}


@cache
def record(name: str) -> RunRecord:
    return RECORDS[name]()


@pytest.mark.slow("staged regression", "staged regression, limited")
@pytest.mark.parametrize("name", RECORDS)
def test_an_honest_record_holds(name: str) -> None:
    """Whatever the procedure was and however the run ended."""
    checked = verify(record(name))

    assert [] == [str(one) for one in checked.differences]
    assert checked.matches
    assert checked.trials == len(record(name).trials)


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_holds_after_it_was_written_and_read(name: str) -> None:
    """JSON keeps whatever the verdict rests on."""
    kept = record(name)
    read = replace(
        kept,
        plan=from_plain(Plan, to_plain(kept.plan)),
        verdict=from_plain(Verdict, to_plain(kept.verdict)),
    )

    assert verify(read).matches


def test_a_resumed_run_holds(tmp_path: Path) -> None:
    """Trials from before and after the restart make one run."""
    given: dict[str, Any] = {"inputs": QUESTIONS, "seed": 5, "store": tmp_path, "progress": False}
    first = tw.run(contract(paid), budget=tw.Budget(trials=4), **given).record
    whole = tw.run(contract(paid), resume=True, **given).record

    assert len(first.trials) == 4 < len(whole.trials)
    assert verify(whole).matches


# --- Altered verdicts -------------------------------------------------------------------------

#: What no trial can tell, and is taken as recorded.
TAKEN = (
    "started_at",
    "aborted",
    "spending.seconds",
    "spending.abandoned",
    "spending.abandoned_tokens",
    "spending.abandoned_usd",
    "reproducibility.reference_data_version",
    "reproducibility.formula_value_fixtures",
    "reproducibility.quantile_source",
    "reproducibility.interval_implementation",
    "reproducibility.sort_stable",
    "reproducibility.tie_policy",
    "reproducibility.exact_boundary",
    "reproducibility.tool_version",
    "reproducibility.python_version",
)


def leaves(part: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every single value of a nest of dicts and lists, with the way to it."""
    if isinstance(part, dict) and part:
        for name, one in part.items():
            yield from leaves(one, (*path, name))
    elif isinstance(part, list) and part:
        for place, one in enumerate(part):
            yield from leaves(one, (*path, place))
    else:
        yield path, part


def altered(plain: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy with one value changed."""
    if not path:
        return value
    first, *rest = path
    copy: Any = dict(plain) if isinstance(plain, dict) else list(plain)
    copy[first] = altered(plain[first], tuple(rest), value)
    return copy


def other(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 0.999 if value else 0.001
    return f"{value}x" if isinstance(value, str) else None


@pytest.mark.slow("sequential", "two criteria", "each input", "latency")
@pytest.mark.parametrize(
    "name", ["sequential", "regression", "two criteria", "each input", "latency", "out of money"]
)
def test_every_altered_field_of_a_verdict_is_found(name: str) -> None:
    """No number, no name and no sentence can be changed unnoticed, and its place is told."""
    kept = record(name)
    plain = to_plain(kept.verdict)
    tried = 0
    for path, value in leaves(plain):
        dotted = ".".join(map(str, path))
        # A design is the plan's own, and is checked there; an absent value has no other.
        if dotted in TAKEN or "design" in path or other(value) is None:
            continue
        try:
            verdict = from_plain(Verdict, altered(plain, path, other(value)))
        except tw.InvalidArgument:
            continue  # no such verdict can be read
        checked = verify(replace(kept, verdict=verdict))
        tried += 1

        assert not checked.matches, dotted
        last = next(part for part in reversed(path) if isinstance(part, str))
        assert any(last in one.path for one in checked.differences), dotted
    assert tried > 25


@pytest.mark.parametrize("name", ["sequential", "fixed", "regression"])
def test_a_decision_that_was_turned_is_found(name: str) -> None:
    """With what is stored and what follows."""
    kept = record(name)
    turned = "FAIL" if kept.verdict.decision == "PASS" else "PASS"
    verdict = replace(kept.verdict, decision=tw.Decision(turned))
    (difference,) = verify(replace(kept, verdict=verdict)).differences

    assert f"verdict.decision: {turned} is stored, {kept.verdict.decision} follows" == str(
        difference
    )


def test_parts_are_named_and_not_numbered() -> None:
    """By criterion."""
    kept = record("two criteria")
    findings = [*kept.verdict.findings]
    tally = replace(findings[1].tally, passed=findings[1].tally.passed - 1)
    findings[1] = replace(findings[1], tally=tally)
    verdict = replace(kept.verdict, findings=tuple(findings))
    (difference,) = verify(replace(kept, verdict=verdict)).differences

    assert "verdict.findings[short].tally.passed" == difference.path


def test_rounding_is_no_difference() -> None:
    """Another machine may add in another order and round the last digit otherwise."""
    kept = record("paid")
    (finding,) = kept.verdict.findings
    assert finding.estimate is not None
    assert kept.verdict.spending.usd is not None
    verdict = replace(
        kept.verdict,
        findings=(replace(finding, estimate=finding.estimate * (1 + 1e-12)),),
        spending=replace(kept.verdict.spending, usd=kept.verdict.spending.usd + 1e-9),
    )

    assert verify(replace(kept, verdict=verdict)).matches


def test_another_versions_wording_is_no_difference_and_its_numbers_are() -> None:
    """Sentences may be put otherwise by a later version; decisions may not."""
    kept = record("sequential")
    (finding,) = kept.verdict.findings
    old = replace(kept.verdict.reproducibility, tool_version="0.0.1")
    reworded = replace(
        kept.verdict, reproducibility=old, findings=(replace(finding, statement="It went well."),)
    )
    recounted = replace(reworded, spending=replace(reworded.spending, trials=1))

    assert verify(replace(kept, verdict=reworded)).matches
    (difference,) = verify(replace(kept, verdict=recounted)).differences
    assert "verdict.spending.trials" == difference.path


# --- Altered trials ---------------------------------------------------------------------------


def with_trial(kept: RunRecord, place: int, **changes: Any) -> RunRecord:
    trials = [*kept.trials]
    trials[place] = replace(trials[place], **changes)
    return replace(kept, trials=tuple(trials))


@pytest.mark.parametrize("name", ["sequential", "fixed", "regression", "observational"])
def test_every_outcome_that_was_turned_is_found(name: str) -> None:
    """A single success made of a failure, or the other way round."""
    kept = record(name)
    for place, trial in enumerate(kept.trials):
        (outcome,) = trial.outcomes
        result = CheckResult.fail("turned") if outcome.passed else CheckResult.ok()
        changed = with_trial(kept, place, outcomes=(replace(outcome, result=result),))

        assert not verify(changed).matches, place


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"seed": 7}, "trials[inputs 3].seed"),
        ({"input_id": "9"}, "trials[inputs 3].input_id"),
        ({"index": 10_000}, "trials[inputs 10000]"),
        ({"index": 2}, "trials[inputs 2]"),
        ({"experiment": "elsewhere"}, "trials[elsewhere 3].experiment"),
        ({"outcomes": ()}, "trials[inputs 3].outcomes"),
    ],
)
def test_a_trial_that_the_plan_does_not_issue_is_found(changes: dict[str, Any], path: str) -> None:
    """Another seed, another input, a place that is not there, or one that is taken."""
    checked = verify(with_trial(record("fixed"), 3, **changes))

    assert path in [one.path for one in checked.differences]
    assert all(one.path.startswith("trials[") for one in checked.differences)


def test_a_trial_left_out_is_found() -> None:
    """The last one, which decided; and one in the middle."""
    kept = record("sequential")

    assert not verify(replace(kept, trials=kept.trials[:-1])).matches
    assert not verify(replace(kept, trials=kept.trials[:1] + kept.trials[2:])).matches


def test_a_cheaper_trial_is_found() -> None:
    """What was spent is added up again."""
    kept = record("paid")
    assert kept.trials[0].cost_usd is not None
    cheaper = with_trial(kept, 0, cost_usd=kept.trials[0].cost_usd - 0.01)
    (difference,) = verify(cheaper).differences

    assert "verdict.spending.usd" == difference.path


# --- Altered plans ----------------------------------------------------------------------------


def with_criterion(kept: RunRecord, **changes: Any) -> RunRecord:
    """A record whose plan has another criterion, under a hash that fits it."""
    from trialwise.model.fingerprint import plan_hash

    (criterion,) = kept.plan.criteria
    plan = replace(kept.plan, criteria=(criterion.change(**changes),))
    known = replace(kept.verdict.reproducibility, plan_hash=plan_hash(plan))
    return replace(kept, plan=plan, verdict=replace(kept.verdict, reproducibility=known))


def test_another_plan_is_found_by_its_hash() -> None:
    """As it stands in the verdict, and as it was written before the first trial."""
    kept = record("fixed")
    moved = replace(kept, plan=replace(kept.plan, seed=kept.plan.seed + 1))
    paths = [one.path for one in verify(moved, known_hash="0123456789abcdef").differences]

    assert {"plan_hash", "verdict.reproducibility.plan_hash"} <= {*paths}
    assert ["plan_hash"] == [one.path for one in verify(kept, known_hash="0").differences]


@pytest.mark.parametrize("name", ["curtailed", "fixed", "fixed exact", "regression"])
def test_a_cutoff_that_was_moved_is_found(name: str) -> None:
    """Even under a hash that was made to fit: the threshold and the level lead to another."""
    kept = record(name)
    (criterion,) = kept.plan.criteria
    assert criterion.cutoff is not None
    checked = verify(with_criterion(kept, cutoff=criterion.cutoff - 1))

    assert f"plan.criteria[right].cutoff: {criterion.cutoff - 1} is stored, " in str(
        checked.differences[0]
    )


def test_a_comparison_whose_looks_share_alpha_holds_by_its_own_boundaries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Plans of before there were schemes have none, and are derived by the rule of then."""
    with monkeypatch.context() as before:
        before.setattr(regression_designs, "find_scheme", lambda *_given, **_more: None)
        kept = regression(None)
    design: Any = kept.plan.criteria[0].design
    moved = replace(design, reject=(*design.reject[:15], 5, *design.reject[16:]))

    assert design.accept
    assert design.scheme is None
    assert kept.plan.criteria[0].decision_rule == "regression/boschloo/2"
    assert verify(kept).matches
    assert not verify(with_criterion(kept, design=moved)).matches


def test_a_scheme_that_was_moved_is_found() -> None:
    """Its boundaries, its heights under the same level, and a level that it does not keep."""
    kept = record("staged regression")
    design: Any = kept.plan.criteria[0].design
    scheme = design.scheme
    higher = replace(scheme, heights=tuple(one + 0.5 for one in scheme.heights))
    looser = apply_scheme(higher, design.baseline_successes, design.alternative_rate)

    assert kept.plan.criteria[0].decision_rule == "regression/likelihood-ratio/2"
    assert find_level(higher) > 0.05 >= scheme.level == find_level(scheme)
    for changed, place in (
        (replace(design, reject=tuple(max(1, one - 1) for one in design.reject)), "reject"),
        (replace(design, scheme=replace(scheme, level=0.01)), "level"),
        (replace(design, scheme=higher), "level"),
        (looser, "level"),
    ):
        checked = verify(with_criterion(kept, design=changed))
        assert any(place in one.path for one in checked.differences)


def test_boundaries_that_were_moved_are_found() -> None:
    """Their exact errors are counted again: this design would PASS after one success."""
    kept = record("sequential")
    design: Any = kept.plan.criteria[0].design
    accept = (-1, 0, *(max(0, one) for one in design.accept[2:]))
    easy = replace(design, accept=accept, certificate=design.certificate)
    checked = verify(with_criterion(kept, design=easy))

    assert "plan.criteria[right].design" == checked.differences[0].path
    assert "P(PASS) at 0.7 of at most 0.05" == checked.differences[0].stored


def test_a_design_for_another_rate_is_found() -> None:
    """Its boundaries keep their errors, but at a rate that nobody promised."""
    kept = record("sequential")
    easier = record("easier").plan.criteria[0].design
    checked = verify(with_criterion(kept, design=easier))

    assert "plan.criteria[right].design.p0" in [one.path for one in checked.differences]


def test_a_level_that_was_moved_by_less_than_rounding_is_found() -> None:
    """Plan and design hold one number, so the comparison is exact: a level may be tiny."""
    kept = record("sequential")
    alpha = kept.plan.criteria[0].alpha
    assert alpha is not None
    checked = verify(with_criterion(kept, alpha=alpha * (1 + 1e-12)))

    assert "plan.criteria[right].design.alpha" in [one.path for one in checked.differences]


def test_a_plan_that_cannot_be_decided_is_a_difference() -> None:
    """And no traceback: here nobody requires a rate."""
    checked = verify(with_criterion(record("no claim"), threshold=Threshold()))

    assert ["verdict"] == [one.path for one in checked.differences]
    assert "cannot be decided" in checked.differences[0].derived


def test_a_verification_names_its_run() -> None:
    """With the version that wrote it."""
    kept = replace(record("fixed"), run_id="2026-01-01T00-00-00Z-verified-abcd")
    verdict = replace(kept.verdict, run_id=kept.run_id, started_at=datetime(2026, 1, 1, tzinfo=UTC))
    checked = verify(replace(kept, verdict=verdict))

    assert checked.matches
    assert (kept.run_id, "verified") == (checked.run_id, checked.contract)
    assert verdict.reproducibility.tool_version == checked.tool_version
