"""What judges take and what they leave open, in the record of a run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import beta
from tests.reports.short_reports import render_summary

import trialwise as tw
from trialwise.checks.criterion_scopes import criterion_structure
from trialwise.judges import Calibration, GoldFiles, judge
from trialwise.model.evidence import StopReason, Tally
from trialwise.model.reply import Reply, Usage
from trialwise.model.trial import CheckResult, ErrorClass, FailReason, Outcome
from trialwise.model.verdict import Decision
from trialwise.pages.suite_totals import bound_suite_errors
from trialwise.procedures.base import Counts
from trialwise.procedures.compliance import PROCEDURE as COMPLIANCE
from trialwise.procedures.criterion_rows import Rows
from trialwise.procedures.judge_corrections import correct
from trialwise.renderers.capabilities import Capabilities
from trialwise.runtime.verifying import verify
from trialwise.stats import Confusion, decide_judged
from trialwise.stats.judged_decision import CORRECTIONS
from trialwise.stats.sequential import SequentialDesign
from trialwise.stores.runs import RunStore

Start = Callable[[Callable[[Any], Any]], Any]
Says = Callable[..., str]
MEASURED = Confusion(true_pass=60, false_pass=1, true_fail=58, false_fail=1)


async def service(text: str) -> Reply:
    usage = Usage(input_tokens=10, output_tokens=1)
    return Reply(value=text.upper(), usage=usage, cost_usd=0.01, latency_s=0.001)


def run(check: Any, *, trials: int = 12, **options: Any) -> Any:
    """A judged criterion beside a plain one, over two inputs."""
    contract = tw.Contract(
        "agent",
        service,
        [
            tw.Criterion("judged", check, at_least=0.5),
            tw.Criterion("loud", str.isupper, at_least=0.5),
        ],
        sampling=["yes", "no"],
    )
    options = {"trials": trials, "seed": 3, "curtail": False, "store": None} | options
    return tw.run(contract, progress=False, **options)


def calibrated(one: Any, *, counts: Confusion = MEASURED, **options: Any) -> Any:
    """A judge that may decide."""
    plain = judge("r", one.service(), **options)
    found = Calibration(judge=plain.identity, gold="g", provenance="two people", confusion=counts)
    return replace(plain, calibration=found)


def test_what_judges_take_is_kept_apart(juror: Start, says: Says, tmp_path: Path) -> None:
    """In every trial, in the spending, and after the journal was read again."""
    one = juror(lambda _: says(True))

    result = run(judge("r", one.service(), votes=2), store=tmp_path)

    for trial in result.record.trials:
        assert Usage(input_tokens=2000, output_tokens=200) == trial.judging_usage
        assert 0.0024 == pytest.approx(trial.judging_cost_usd)
        assert (Usage(input_tokens=10, output_tokens=1), 0.01) == (trial.usage, trial.cost_usd)
    spending = result.verdict.spending
    assert (12 * 11, 12 * 2200) == (spending.tokens, spending.judging_tokens)
    assert (0.12, 0.0288) == (spending.usd, spending.judging_usd)
    (stored,) = RunStore(tmp_path).list()
    assert result.record.trials == RunStore(tmp_path).load(stored.run_id).trials


def test_a_budget_pays_the_judges_too(juror: Start, says: Says) -> None:
    """Ten dollars are ten dollars, whoever gets them."""
    one = juror(lambda _: says(True))

    result = run(judge("r", one.service(), votes=10), trials=200, budget=tw.Budget(usd=0.1))

    assert StopReason.MONEY_BUDGET is result.verdict.stop
    assert 4 == len(result.record.trials)  # 0.022 each: a fifth would make 0.11


def broken_at_times(says: Says) -> Callable[[Any], Any]:
    calls = iter(range(10_000))
    return lambda _: 500 if next(calls) % 4 == 0 else says(True)


def test_a_judges_trouble_is_left_out_per_protocol(
    juror: Start, says: Says, no_waiting: Any, tmp_path: Path
) -> None:
    """It counts as failed, is said to, and both counts stand side by side; the other one's too."""
    asking = judge("r", juror(broken_at_times(says)).service(), retries=0, clock=no_waiting)

    result = run(asking, store=tmp_path)

    judged, loud = result.verdict.findings
    assert (9, 12) == (judged.tally.passed, judged.tally.trials)
    assert (9, 9) == (judged.per_protocol.passed, judged.per_protocol.trials)
    assert (12, 12) == (loud.per_protocol.passed, loud.per_protocol.trials)
    assert {"infrastructure": 3} == judged.breakdown.errors
    assert {} == loud.breakdown.errors
    disclosed = (
        "3 of 12 trials were not measured (no verdict from the judge) and count as failed; "
        "without them 9 of 9 (100.0 %) pass"
    )
    assert disclosed in judged.caveats
    (stored,) = RunStore(tmp_path).list()
    again = RunStore(tmp_path).load(stored.run_id)
    assert result.record.trials == again.trials
    classes = [trial.outcome("judged").error_class for trial in again.trials]
    assert 3 == classes.count(ErrorClass.INFRASTRUCTURE)


def test_a_run_may_be_decided_without_them(juror: Start, says: Says, no_waiting: Any) -> None:
    """By the explicit choice that every per-protocol decision is."""
    asking = calibrated(juror(broken_at_times(says)), retries=0, clock=no_waiting)

    result = run(asking, analysis=tw.model.Analysis.PER_PROTOCOL, trials=12)

    judged, loud = result.verdict.findings
    assert (9, 9) == (judged.tally.passed, judged.tally.trials)
    assert (12, 12) == (loud.tally.passed, loud.tally.trials)


def repeating(says: Says, pattern: str) -> Callable[[Any], Any]:
    """A juror that passes (+), fails (-) and breaks down (?) in turn."""
    calls = cycle(pattern)
    return lambda _: {"+": says(True), "-": says(False), "?": 500}[next(calls)]


@pytest.mark.slow("??+-INCONCLUSIVE-False", "-----?-FAIL-False")
@pytest.mark.parametrize("curtail", [False, True])
@pytest.mark.parametrize(
    ("pattern", "decision"),
    [("??+", "INCONCLUSIVE"), ("-----?", "FAIL"), ("+++?", "PASS"), ("?", "INCONCLUSIVE")],
)
def test_a_judges_silence_is_no_failure_of_the_service(
    juror: Start, says: Says, no_waiting: Any, pattern: str, *, decision: str, curtail: bool
) -> None:
    """FAIL stands where it would had they passed, PASS where it would had they failed."""
    asking = calibrated(juror(repeating(says, pattern)), retries=0, clock=no_waiting)

    never = tw.model.AbortRule(max_error_rate=1.0)
    result = run(asking, trials=60, curtail=curtail, abort=never)

    judged, loud = result.verdict.findings
    assert (Decision(decision), Decision.PASS) == (judged.decision, loud.decision)
    assert Decision(decision) is result.verdict.decision
    silenced = "no verdict from the judge, and had they passed" in judged.statement
    assert silenced is (decision == "INCONCLUSIVE")
    assert verify(result.record).matches


def one_criterion(check: Any) -> Any:
    """A run that asks for no size, so that it may end early."""
    contract = tw.Contract(
        "agent",
        service,
        [tw.Criterion("judged", check, at_least=0.6, margin=0.3)],
        sampling=["yes", "no"],
    )
    result = tw.run(contract, seed=3, store=None, progress=False)
    assert verify(result.record).matches
    return result


@pytest.mark.parametrize(("good", "decision"), [("+", "PASS"), ("-", "FAIL")])
def test_a_sequential_decision_goes_on_without_the_silent_ones(
    juror: Start, says: Says, no_waiting: Any, good: str, decision: str
) -> None:
    """They were not measured: both rates are given, and on what condition the verdict is right."""
    one = juror(repeating(says, good + "?"))
    result = one_criterion(judge("r", one.service(), retries=0, clock=no_waiting))

    (judged,) = result.verdict.findings
    assert isinstance(judged.design, SequentialDesign)
    silent = sum(trial.outcome("judged").error_class != "none" for trial in result.record.trials)
    assert silent > 0
    assert len(result.record.trials) - silent == judged.tally.trials
    assert Decision(decision) is judged.design.decide(judged.tally.trials, judged.tally.failed)
    every, passed = len(result.record.trials), judged.tally.passed
    share = f"{100 * passed / every:.1f} %"
    disclosed = (
        f"{silent} of {every} trials were not measured (no verdict from the judge); counting them "
        f"as failed (intent-to-treat), {passed} of {every} ({share}) pass. The error rates hold "
        "where"
    )
    assert any(one.startswith(disclosed) for one in judged.caveats), judged.caveats


@pytest.mark.slow
@pytest.mark.parametrize(("pattern", "decision"), [("+++?", "PASS"), ("---?", "FAIL")])
def test_a_measured_judge_decides_between_two_rates_when_all_is_in(
    juror: Start, says: Says, no_waiting: Any, pattern: str, decision: str
) -> None:
    """By intervals that include what its labels leave open; a silent judge allows no early look."""
    asking = calibrated(juror(repeating(says, pattern)), retries=0, clock=no_waiting)
    result = one_criterion(asking)

    (judged,) = result.verdict.findings
    n = judged.planned_trials
    assert n == len(result.record.trials)
    said = [trial.outcome("judged").result.passed for trial in result.record.trials]
    silent = sum(trial.outcome("judged").error_class != "none" for trial in result.record.trials)
    at_best = decide_judged(sum(said) + silent, n, MEASURED, 0.6, confidence=0.95)
    at_worst = decide_judged(sum(said), n, MEASURED, 0.3, confidence=0.80)
    expected = {
        "FAIL": at_best.decision is Decision.FAIL,
        "PASS": at_worst.decision is Decision.PASS,
    }
    assert expected.get(decision, not any(expected.values()))
    assert Decision(decision) is judged.decision is result.verdict.decision
    assert "judged/corrected-interval" == judged.decision_rule
    assert judged.judged is not None


def test_a_judge_without_a_gold_set_is_reported_and_decides_nothing(
    juror: Start, says: Says
) -> None:
    """Whatever it says; the verdict is that of the other criterion, and the reason stands there."""
    result = run(judge("r", juror(lambda _: says(False)).service()))

    judged, loud = result.verdict.findings
    assert Decision.PASS is result.verdict.decision is loud.decision
    assert Decision.FAIL is judged.decision
    assert "nobody has measured" in judged.advisory[0]
    assert judged.caveats[0].startswith("Advisory: the judge has no gold set")
    assert () == result.verdict.triggers


def test_a_calibrated_judge_decides(juror: Start, says: Says, tmp_path: Path) -> None:
    """Like any other, where the corrected rate says the same; the record can be read again."""
    result = run(calibrated(juror(lambda _: says(False))), trials=40, store=tmp_path)

    judged, _ = result.verdict.findings
    assert Decision.FAIL is result.verdict.decision
    assert () == judged.advisory
    assert ["judged"] == [one.name for one in result.verdict.triggers]
    assert decide_judged(0, 40, MEASURED, 0.5, confidence=0.9) == judged.judged
    (stored,) = RunStore(tmp_path).list()
    assert result.record.verdict == RunStore(tmp_path).load(stored.run_id).verdict


@pytest.mark.slow("False")
@pytest.mark.parametrize("curtail", [False, True])
def test_a_judged_rate_alone_is_no_verdict(juror: Start, says: Says, curtail: bool) -> None:
    """What the judge shows, its own errors may leave open; what would settle it is said."""
    calls = iter(range(1000))
    one = juror(lambda _: says(59 * next(calls) % 100 < 59))

    result = run(calibrated(one), trials=100, curtail=curtail)

    judged, _ = result.verdict.findings
    assert Decision.INCONCLUSIVE is judged.decision is result.verdict.decision
    assert "own errors leave it open" in judged.statement
    assert any("Corrected for the judge's errors on 120 labels" in one for one in judged.caveats)
    assert judged.judged is not None
    assert Decision.INCONCLUSIVE is judged.judged.decision


def test_a_calibration_does_not_make_another_criterion(tmp_path: Path) -> None:
    """A baseline of the same rubric and jurors stays one; files and time limits are no part."""
    from trialwise.services import ChatService

    def structure(**options: Any) -> str:
        juror = ChatService("http://127.0.0.1:9/v1", "m", api_key_env=None)
        check = judge(options.pop("rubric", "r"), juror, **options)
        return criterion_structure(tw.Criterion("c", check, at_least=0.5))

    found = Calibration(judge="j", gold="g", provenance="p", confusion=MEASURED)
    assert structure() == structure(
        calibration=found, files=GoldFiles.beside(tmp_path / "gold.yaml"), timeout_s=1.0
    )
    assert structure() != structure(rubric="s")
    assert structure() != structure(votes=3)


def compared(check: Any) -> Any:
    """A service that shouts against one that does not, judged and looked at."""

    def quiet(text: str) -> str:
        return text

    def loud(text: str) -> str:
        return text.upper()

    first, second = (
        tw.Contract(
            "agent",
            one,
            [
                tw.Criterion("judged", check, at_least=0.5),
                tw.Criterion("upper", str.isupper, at_least=0.5),
            ],
            sampling=["yes", "no"],
        )
        for one in (quiet, loud)
    )
    never = tw.model.AbortRule(max_error_rate=1.0)
    found = tw.compare(first, second, trials=20, seed=3, abort=never, store=None, progress=False)
    return found.verdict


def test_an_unmeasured_judge_compares_nothing_for_good(juror: Start, says: Says) -> None:
    """That it likes the worse one is reported; the other criterion decides."""
    one = juror(lambda asked: says(not {"YES", "NO"} & set(asked.sections.values())))

    verdict = compared(judge("r", one.service()))

    judged, upper = verdict.findings
    assert ("worse", "better") == (judged.contrast, upper.contrast)
    assert "nobody has measured" in judged.advisory[0]
    assert Decision.PASS is verdict.decision


def test_pairs_without_a_verdict_are_left_out(juror: Start, says: Says, no_waiting: Any) -> None:
    """Of either service: a judge's silence is no failure of the one it fell on."""
    one = juror(lambda asked: 500 if "NO" in asked.sections.values() else says(True))
    asking = calibrated(one, retries=0, clock=no_waiting)

    judged, upper = compared(asking).findings

    assert (10, 20) == (judged.pairs.pairs, upper.pairs.pairs)
    assert (10, 10) == (judged.control.passed, judged.candidate.passed)
    assert any("10 pairs hold a reply that got no verdict" in one for one in judged.caveats)


@pytest.mark.slow
def test_both_corrections_have_to_agree(juror: Start, says: Says) -> None:
    """Nine bad units say little of how often the judge passes what is bad."""
    few = Confusion(true_pass=60, false_pass=0, true_fail=9, false_fail=0)
    by_rectifier = decide_judged(61, 100, few, 0.5, confidence=0.9)
    by_both = decide_judged(61, 100, few, 0.5, confidence=0.9, correction="rogan-gladen")
    one = juror(repeating(says, "+-+-+" * 19 + "+++-+"))

    judged, _ = run(calibrated(one, counts=few), trials=100).verdict.findings

    assert 61 == judged.tally.passed
    assert (Decision.PASS, Decision.INCONCLUSIVE) == (by_rectifier.decision, by_both.decision)
    assert by_both == judged.judged
    assert Decision.INCONCLUSIVE is judged.decision


def test_a_judge_by_another_name_is_the_same_judge(juror: Start, says: Says) -> None:
    """It advises where it did, and is corrected where it was."""
    one = juror(lambda _: says(True))

    unmeasured, _ = run(tw.named("polite", judge("r", one.service()))).verdict.findings
    measured, _ = run(tw.named("polite", calibrated(one)), trials=40).verdict.findings

    assert "nobody has measured" in unmeasured.advisory[0]
    decided = decide_judged(40, 40, MEASURED, 0.5, confidence=0.9)
    assert ((), decided) == (measured.advisory, measured.judged)


def test_a_measured_judge_beside_others_advises(juror: Start, says: Says) -> None:
    """What was measured is its own error, not that of all postconditions together."""
    one = juror(lambda _: says(True))

    judged, _ = run([calibrated(one), tw.length(minimum=1)]).verdict.findings

    assert "a criterion of its own" in judged.advisory[0]
    assert judged.judged is None


def test_only_unproven_judges_are_no_pass(juror: Start, says: Says) -> None:
    """A judge that says yes to everything shows nothing, and the line says so."""
    one = juror(lambda _: says(True))
    contract = tw.Contract(
        "agent",
        service,
        [tw.Criterion("judged", judge("r", one.service()), at_least=0.5)],
        sampling=["yes", "no"],
    )

    result = tw.run(contract, trials=20, seed=3, store=None, progress=False)

    verdict = result.verdict
    assert {0} == {one.levels for one in bound_suite_errors([result.verdict])}
    assert Decision.PASS is verdict.findings[0].decision
    assert Decision.INCONCLUSIVE is verdict.decision
    plain = Capabilities(unicode=True)
    text = render_summary([verdict], capabilities=plain)
    assert "PASS (advisory)" in text
    assert "INCONCLUSIVE  no verdict: 1 criterion only advises" in text


def test_an_abort_says_why_nobody_answered(juror: Start, no_waiting: Any) -> None:
    """The reason is the juror's, not the service's."""
    asking = judge("r", juror(lambda _: 404).service(), retries=0, clock=no_waiting)

    contract = tw.Contract(
        "agent", service, [tw.Criterion("judged", asking, at_least=0.5)], sampling=["yes", "no"]
    )

    verdict = tw.run(contract, trials=40, seed=3, store=None, progress=False).verdict

    assert StopReason.ERROR_RATE is verdict.stop
    assert "could not be measured" in verdict.aborted
    assert "404" in verdict.aborted


@pytest.mark.parametrize("measured", [False, True])
def test_a_judge_beside_a_baseline_says_that_both_rates_are_judged(
    juror: Start, says: Says, tmp_path: Path, measured: bool
) -> None:
    """Its own errors may have changed; a plain criterion beside it says nothing of the kind."""
    one = juror(lambda _: says(True))
    check = calibrated(one) if measured else judge("r", one.service())
    contract = tw.Contract(
        "agent",
        service,
        [
            tw.Criterion("judged", check, no_worse_than="baseline"),
            tw.Criterion("loud", str.isupper, no_worse_than="baseline"),
        ],
        sampling=["yes", "no"],
    )
    places: dict[str, Any] = {"store": tmp_path / "runs", "baselines": tmp_path / "baselines"}
    tw.measure(contract, trials=40, progress=False, **places)
    # The fewest trials that can show a rate of 40 in 41, which is what 40 of 40 are taken for: with
    # fewer, not even an unbroken series of passes is improbable below it.
    least = math.ceil(math.log(0.05) / math.log(40 / 41))

    result = tw.run(contract, trials=least, progress=False, **places)

    judged, loud = result.verdict.findings
    told = "Both rates are what the judge said, uncorrected"
    assert [True, False] == [
        any(caveat.startswith(told) for caveat in finding.caveats) for finding in (judged, loud)
    ]
    assert measured is not bool(judged.advisory)
    assert judged.judged is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("at_least", "decision"), [(0.5, "PASS"), (0.82, "INCONCLUSIVE"), (0.98, "FAIL")]
)
def test_no_judge_erred_about_a_trial_without_a_reply(
    juror: Start, says: Says, at_least: float, decision: str
) -> None:
    """The corrected rate of the replies is multiplied by their share, with its own uncertainty."""
    calls = cycle("+++++++!")

    def service(text: str) -> str:
        if next(calls) == "!":
            raise RuntimeError("no")
        return text

    asking = calibrated(juror(lambda _: says(True)))
    criterion = tw.Criterion("judged", asking, at_least=at_least)
    contract = tw.Contract("agent", service, [criterion], sampling=["yes"])
    result = tw.run(contract, trials=400, seed=3, curtail=False, store=None, progress=False)

    (judged,) = result.verdict.findings
    # A fifth of the error for the share, by Clopper and Pearson's beta quantiles; the rest for both
    # corrections of the replies.
    low, high = (float(beta.ppf(q, *ab)) for q, ab in ((0.005, (350, 51)), (0.995, (351, 50))))
    shown = [
        decide_judged(350, 350, MEASURED, at_least / low, confidence=0.92, correction=one).decision
        for one in CORRECTIONS[:2]
        if at_least < low
    ]
    assert (decision == "PASS") is (shown == [Decision.PASS] * 2)
    assert (decision == "FAIL") is (high < at_least)  # not even flawless replies would do
    assert (400, 350) == (judged.tally.trials, judged.tally.passed)
    assert Decision(decision) is judged.decision


@pytest.mark.parametrize("each_input", [False, True])
def test_labels_of_all_inputs_are_not_those_of_one(
    juror: Start, says: Says, each_input: bool
) -> None:
    """Where every input is judged on its own, the criterion says so before the first trial."""
    criterion = tw.Criterion(
        "judged", calibrated(juror(lambda _: says(True))), at_least=0.5, each_input=each_input
    )
    contract = tw.Contract("agent", service, [criterion], sampling=["yes", "no"])

    (planned,) = tw.check(contract, trials=40).criteria

    assert any("of all inputs together" in one for one in planned.caveats) is each_input


def test_what_the_judge_could_not_read_is_no_error_of_the_judge() -> None:
    """As a trial without a reply: a fifth of 10,000 gave nothing to read, and 75 % are good."""
    errors = Confusion(true_pass=735_000, false_fail=15_000, true_fail=225_000, false_pass=25_000)
    criterion = tw.Criterion("judged", str.isupper, at_least=0.75)
    plan = tw.check(tw.Contract("a", service, [criterion], sampling=["x"]), trials=10_000, seed=1)
    (planned,) = plan.criteria
    results = [
        *[CheckResult.ok()] * 7_400,
        *[CheckResult.fail("no")] * 600,
        *[CheckResult.fail("unread", reason=FailReason.TRANSFORM)] * 2_000,
    ]
    outcomes = [Outcome(criterion="judged", result=one) for one in results]
    trials = [
        tw.model.Trial(experiment="inputs", index=place, input_id="1", seed=1, outcomes=(one,))
        for place, one in enumerate(outcomes)
    ]
    tally = Tally(trials=10_000, passed=7_400)
    found = COMPLIANCE.conclude(planned, Counts(tally=tally))

    finding = correct(found, planned.change(errors=errors), Rows.of(trials), StopReason.COMPLETE)

    assert Decision.FAIL is found.decision
    assert Decision.INCONCLUSIVE is finding.decision


def test_labels_that_count_as_trials_are_evidence(juror: Start, says: Says) -> None:
    """The same trials and labels leave it open where only the judge's errors are taken over."""
    few = Confusion(true_pass=66, false_pass=0, true_fail=44, false_fail=0)
    pattern = "+-+-+" * 8

    alone, _ = run(
        calibrated(juror(repeating(says, pattern)), counts=few), trials=40
    ).verdict.findings
    pooling = calibrated(juror(repeating(says, pattern)), counts=few, labels_count_as_trials=True)
    together, _ = run(pooling, trials=40).verdict.findings

    assert 24 == alone.tally.passed == together.tally.passed
    assert (Decision.INCONCLUSIVE, Decision.PASS) == (alone.decision, together.decision)
    assert together.judged == decide_judged(24, 40, few, 0.5, confidence=0.9, correction="pooled")


@pytest.mark.slow
def test_labels_of_an_older_service_are_no_evidence(juror: Start, says: Says) -> None:
    """They pass nine in ten and the trials half: the pooled rate would PASS, and is withheld."""
    old = Confusion(true_pass=180, false_pass=0, true_fail=20, false_fail=0)
    asking = calibrated(juror(repeating(says, "+-")), counts=old, labels_count_as_trials=True)

    result = run(asking, trials=60)

    judged, _ = result.verdict.findings
    assert (
        decide_judged(30, 60, old, 0.5, confidence=0.9, correction="pooled").decision
        is Decision.PASS
    )
    assert Decision.INCONCLUSIVE is judged.decision
    assert "90.0 % of the labelled outputs and 50.0 % of these trials" in judged.statement
    assert verify(result.record).matches
