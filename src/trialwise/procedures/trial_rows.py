"""Everything that counting the trials of a criterion says.

Diagnostics are signs that trials were not independent, or not of one kind (companion §8.2, §8.3).
They qualify a verdict and never change it. Inputs are drawn in random order, so that without
dependence or drift every order of the outcomes is equally likely, however unlike the inputs are:
both tests are exact permutation tests of that, and need no rate to be known.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from trialwise import stats
from trialwise.decimals import as_written, complement
from trialwise.documents.numbers import as_count, as_observed
from trialwise.model import evidence as grounds
from trialwise.model.claim import CHALLENGES, PopulationClaim, SamplingRole
from trialwise.model.contract import Prevalence
from trialwise.model.evidence import Note, NoteKind, StopReason, Tally
from trialwise.model.plan import CriterionPlan, ExperimentPlan, Plan
from trialwise.model.trial import NOT_MEASURED, Analysis, ErrorClass, FailReason
from trialwise.procedures.base import Conclusion
from trialwise.procedures.criterion_rows import Row, Rows, sum_counts

#: Inputs that were not asked are kept by name up to this number.
_MOST_NAMED = 20


def tally_of(rows: Rows, trials: int, passed: int) -> Tally:
    """Counts with the number of trials that gave something to test."""
    untestable = rows.count(lambda row: row.is_untestable)
    return Tally(trials=trials, passed=passed, evaluable=max(passed, trials - untestable))


def count_trials(rows: Rows) -> grounds.TrialCounts:
    """Count all trials, the measured ones, and the failures by reason.

    Args:
        rows: The counted trials in order, excused ones included.
    """
    fair = rows.keep(lambda row: not row.is_excused)
    return grounds.TrialCounts(
        intent_to_treat=tally_of(rows, len(rows), rows.passed),
        per_protocol=tally_of(fair, len(fair), fair.passed),
        breakdown=_break_down(rows),
    )


def cover_inputs(rows: Rows, experiment: ExperimentPlan) -> grounds.InputCoverage:
    """Return how many of an experiment's inputs were asked, and which were not."""
    unasked, inputs = rows.list_unasked(experiment.input_ids), len(experiment.input_ids)
    named = tuple(unasked[:_MOST_NAMED])
    return grounds.InputCoverage(inputs=inputs, asked=inputs - len(unasked), unasked=named)


def compare_later(before: Rows, after: Rows) -> tuple[Note, ...]:
    """Say that what ran after a decision looks unlike what it rests on, where it does.

    No error rate is claimed: the decision chose where the trials before it end.
    """
    if not before or not after:
        return ()
    early, late = before.passed, after.passed
    if _compare_rates((early, len(before)), (late, len(after))) >= NOTABLE:
        return ()
    text = (
        f"it was decided at trial {len(before)}, on {early} of {len(before)}; of the {len(after)} "
        f"trials after that {late} passed: what came later looks different"
    )
    return (Note(kind=NoteKind.QUALIFICATION, text=text),)


def _break_down(rows: Rows) -> grounds.Breakdown:
    """Failures by reason, trials by error class."""
    reasons: Counter[FailReason | None] = Counter()
    errors: Counter[ErrorClass] = Counter()
    for row, count in rows.kinds:
        reasons[row.sign.reason] += count
        errors[row.error_class] += count
    return grounds.Breakdown(
        condition=reasons[FailReason.CONDITION],
        transform=reasons[FailReason.TRANSFORM] + reasons[FailReason.RAISED],
        no_value=reasons[FailReason.NO_VALUE] + reasons[FailReason.UNKNOWN],
        errors={str(kind): count for kind, count in errors.items() if kind is not ErrorClass.NONE},
        retried=rows.count(lambda row: row.needed_retry),
        commonest_error=rows.find_commonest_error(),
    )


def diagnose_rows(rows: Rows, *, deciding: int | None = None) -> grounds.Diagnostics:
    """Look for signs that the trials were not independent, or not of one kind.

    Args:
        rows: All trials in order.
        deciding: The place of the trial at which the decision fell early. No sign of a change is
            looked for in it: that it came out as it did is why it was the last.
    """
    untestable = rows.count(lambda row: row.is_untestable and not row.is_excused)
    trials, warnings = len(rows), list[str]()
    if trials and untestable >= as_written(UNTESTABLE_SHARE) * trials:
        warnings.append(
            f"{untestable} of {trials} trials gave nothing that could be checked and count as "
            "failures: look at the reasons before reading the rate as the service's own."
        )
    if deciding is not None:
        rows = rows.select([place != deciding for place in rows.places])
    found = diagnose(array("B", rows.passes))
    # The share is of all trials, the last one included: it says how much could be checked, and
    # not whether trials depend on each other.
    share = untestable / trials if trials else None
    return replace(found, untestable_share=share, warnings=(*found.warnings, *warnings))


def disclose_counts(rows: Rows, *, analysis: Analysis, skips_unjudged: bool) -> tuple[Note, ...]:
    """Say what the counts do not show: what was not measured, not judged, or took a retry.

    Args:
        rows: The trials up to the decision, with those that the analysis leaves out.
        analysis: Whose trials decide.
        skips_unjudged: Whether what no judge judged takes no part.
    """
    skips_unjudged = skips_unjudged or not analysis.counts_silence
    retried = rows.count(lambda row: row.needed_retry)
    passes = as_count(rows.passed, "pass", "passes")
    retries = f"{retried:,} of the {passes} needed a retry after an infrastructure error"
    texts = {
        NoteKind.NOT_MEASURED: _word_unmeasured(rows, analysis),
        NoteKind.RETRIES: retries if retried else "",
        NoteKind.SILENCE: _word_silence(rows, skips_unjudged),
    }
    return tuple(Note(kind=kind, text=text) for kind, text in texts.items() if text)


def _word_unmeasured(rows: Rows, analysis: Analysis) -> str:
    """Say how many trials were not measured, and the rate by the other way to count them."""
    missing = rows.keep(lambda row: row.course.error_class in NOT_MEASURED)
    if not missing or len(missing) == len(rows):  # where none was measured, the statement says so
        return ""
    every = rows.keep(lambda row: not row.is_unjudged)
    fair = every.keep(lambda row: row.course.error_class not in NOT_MEASURED)
    said = missing.find_commonest_error()
    why = f" ({said[:_LONGEST_ERROR]})" if said else ""
    skipped = analysis is not Analysis.INTENT_TO_TREAT
    return _word_missing(len(missing), len(rows), why, every if skipped else fair, skipped=skipped)


def _word_missing(missing: int, trials: int, why: str, other: Rows, *, skipped: bool) -> str:
    """Say what is missing, and the rate by the way to count it that does not decide."""
    were, them = ("was", "it") if missing == 1 else ("were", "them")
    start = f"{missing} of {as_count(trials, 'trial')} {were} not measured{why}"
    share = f"{other.passed} of {len(other)}"
    if other:
        share += f" ({as_observed(other.passed / len(other))})"
    if not skipped:
        return f"{start} and count as failed; without them {share} pass"
    return f"{start}; counting {them} as failed (intent-to-treat), {share} pass"


def _word_silence(rows: Rows, skipped: bool) -> str:
    unjudged = rows.count(lambda row: row.is_unjudged)
    if not unjudged:
        return ""
    why = _WITHOUT_EVIDENCE if rows.count(_lacks_evidence) else _SILENT
    other = rows if skipped else rows.keep(lambda row: not row.is_excused)
    text = _word_missing(unjudged, len(rows), f" ({why})", other, skipped=skipped)
    return f"{text}{_IF_UNRELATED if skipped else ''}"


#: What left-out trials assume: what a judge cannot read may well be worse than what it can.
_IF_UNRELATED = ". The error rates hold where that has nothing to do with whether they would pass"
_SILENT = "no verdict from the judge"
_WITHOUT_EVIDENCE = "what was recorded does not tell"


def _lacks_evidence(row: Row) -> bool:
    return row.sign.error_class is ErrorClass.NO_EVIDENCE


def tell_unmeasured(rows: Rows) -> str:
    """Say why trials were not measured, as one of their criterion's checks says it."""
    outcome = rows.find_outcome(_lacks_evidence)
    return "" if outcome is None else outcome.result.explanation


#: How much of an error a note repeats.
_LONGEST_ERROR = 160


#: A p-value below this is worth a warning: one quiet criterion in a hundred gets it by chance.
NOTABLE = 0.01


#: From this share on, what is measured is as much the plumbing as the service.
UNTESTABLE_SHARE = 0.10


#: The exact runs test takes a second here and grows with the square: beyond, it is left out.
_MOST_TESTED = 100_000


_BY_CHANCE = (
    "About 1 criterion in 100 shows this by chance, so among many criteria some are expected to."
)


def diagnose(passed: Sequence[int]) -> grounds.Diagnostics:
    """Look for dependence and drift in one criterion's outcomes.

    After an early stop the two p-values are indications: the trial that decided was no chance.

    Args:
        passed: The outcomes in the order of inputs.

    >>> found = diagnose([True] * 20 + [False] * 20)
    >>> found.first_half_rate, found.second_half_rate, len(found.warnings)
    (1.0, 0.0, 2)
    >>> diagnose([True, False, True, True]).warnings
    ()
    """
    n, warnings, effective = len(passed), list[str](), None
    if n == 0:
        return grounds.Diagnostics()
    lag_one, runs_p = _dependence(passed)
    first, second, drift_p = _drift(passed)
    if lag_one is not None and 0 < lag_one < 1:
        # Where neighbours are alike, so many independent trials would say as much (§8.2).
        effective = n * (1 - lag_one) / (1 + lag_one)
    if runs_p is not None and runs_p < NOTABLE:
        warnings.append(
            f"Neighbouring trials are more alike than chance makes them (lag-one autocorrelation "
            f"{lag_one:.2f}, exact runs test p = {runs_p:.2g}): they may share a cache, a batch or "
            f"a moment, and then say less than this many independent trials would. {_BY_CHANCE}"
        )
    if drift_p is not None and drift_p < NOTABLE:
        warnings.append(
            f"The rate was {first:.3g} in the first half of the run and {second:.3g} in the second "
            f"(Fisher's exact test p = {drift_p:.2g}): the service, or what it depends on, may "
            f"have changed on the way. {_BY_CHANCE}"
        )
    return grounds.Diagnostics(
        autocorrelation=lag_one,
        autocorrelation_p=runs_p,
        effective_trials=effective,
        first_half_rate=first,
        second_half_rate=second,
        drift_p=drift_p,
        warnings=tuple(warnings),
    )


def _dependence(passed: Sequence[int]) -> tuple[float | None, float | None]:
    """Return the lag-one autocorrelation and the exact runs test that neighbours are alike."""
    lag_one = stats.lag_one_autocorrelation(passed)
    if isinstance(lag_one, stats.Undefined):
        return None, None
    if len(passed) > _MOST_TESTED:
        return lag_one, None
    test = stats.autocorrelation_test(passed)
    return lag_one, None if isinstance(test, stats.Undefined) else test.p_value


def _drift(passed: Sequence[int]) -> tuple[float | None, float | None, float | None]:
    """Compare the two halves: their rates, and Fisher's two-sided p-value."""
    half = len(passed) // 2
    if half == 0:
        return None, None, None
    early, late, rest = sum(passed[:half]), sum(passed[half:]), len(passed) - half
    # Permuting the order keeps the number of passes, which is what Fisher's test is given.
    return early / half, late / rest, _compare_rates((early, half), (late, rest))


def _compare_rates(one: tuple[int, int], other: tuple[int, int]) -> float:
    """Return Fisher's two-sided p-value of two pairs of passes and trials."""
    worse, better = stats.fisher_one_sided(*one, *other), stats.fisher_one_sided(*other, *one)
    return min(1.0, 2 * worse, 2 * better)


# --- What a challenge sampling says of its guardrail (§1.4.5b) ------------------------------------

_RED_TEAM = (
    "Red-team inputs show what reached the user under adversarial prompting; they do not isolate "
    "what the guardrail blocks."
)
_NOT_WHOLE = (
    "A bound on the miss probability needs every planned trial: the run stopped as soon as its "
    "verdict was certain. Switch curtailing off, and fix the number of trials, to have one."
)
_ONLY_THESE = (
    "A bound on misses beyond these candidates needs a superpopulation claim with an argument "
    "that they represent it."
)


def contain(
    conclusion: Conclusion, criterion: CriterionPlan, plan: Plan, rows: Rows, stop: StopReason
) -> Conclusion:
    """Add what a challenge sampling says of its guardrail (§1.4.5b).

    Args:
        conclusion: What was decided.
        criterion: Its plan.
        plan: The run's.
        rows: The counted trials.
        stop: Why no further trial was counted.
    """
    experiment, is_whole = plan.experiment_of(criterion), stop is StopReason.COMPLETE
    role = SamplingRole(experiment.role)  # what its inputs are evidence of
    if role not in CHALLENGES:
        return conclusion
    why = "" if is_whole else _NOT_WHOLE
    if plan.claim.population is not PopulationClaim.SUPERPOPULATION:
        why = _ONLY_THESE
    if role is SamplingRole.RED_TEAM:
        why = _RED_TEAM
    if why:  # no bound on the guardrail follows
        note = Note(kind=NoteKind.GUARDRAIL, text=why)
        return replace(conclusion, notes=(*conclusion.notes, note))
    evidence, tally = conclusion.evidence, conclusion.tally
    if criterion.alpha is None or criterion.estimator is not None or not rows:
        return conclusion

    confidence, counts = complement(criterion.alpha), (tally.passed, tally.trials)
    is_harmless = role is SamplingRole.HARMLESS_CANDIDATES
    measure = stats.guardrail_specificity if is_harmless else stats.guardrail_sensitivity
    bound = measure(*counts, confidence=confidence, rule=plan.rule)
    evidence = replace(evidence, containment=bound)
    if not is_harmless:
        strata = _strata(experiment, rows, confidence, plan.rule)
        residual = _residual(plan.prevalence, bound)
        evidence = replace(evidence, containment_strata=strata, residual=residual)
    return replace(conclusion, evidence=evidence)


def _strata(
    experiment: ExperimentPlan, rows: Rows, confidence: float, rule: stats.Rule
) -> stats.StratifiedContainment | None:
    if not experiment.strata:
        return None

    stratum_of = dict(zip(experiment.input_ids, experiment.strata, strict=True))
    tried = rows.tally_inputs().items()
    counts = sum_counts((stratum_of[name] or "unnamed", pair) for name, pair in tried)
    parts = [
        stats.ChallengeStratum(name=name, blocked=blocked, presented=presented)
        for name, (blocked, presented) in counts.items()
    ]
    return stats.stratified_containment(parts, confidence=confidence, rule=rule)


def _residual(given: Prevalence | None, bound: stats.GuardrailBound) -> stats.ResidualHarm:
    rate, confidence = (None, None) if given is None else (given.rate, given.confidence)
    return stats.residual_harm_bound(
        bound.error_upper,
        rate,
        prevalence_source=None if given is None else "pre-guardrail",
        miss_confidence=bound.confidence,
        prevalence_confidence=confidence,
    )
