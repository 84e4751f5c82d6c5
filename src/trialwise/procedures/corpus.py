"""Corpus: is the required rate met in this corpus, or among the trials of this run? (§8.4.6)

A corpus that was tried whole has a known rate. Of a part of it the hypergeometric law says what the
rest may hold. A claim that generalises to nothing is decided by the observed rate alone.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import cast

from trialwise import stats
from trialwise.decimals import as_written, ceil_product, complement, settled
from trialwise.documents.blocks import Section
from trialwise.errors import InvalidArgument
from trialwise.model.claim import Intent, PopulationClaim
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import CutoffEvidence, PValue, StopReason
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.model.verdict import Decision, Finding
from trialwise.procedures import compliance
from trialwise.procedures.base import Conclusion, Counts, Procedure, Refused, Situation, known
from trialwise.procedures.characteristic import Characteristic, limit_by_levels
from trialwise.procedures.estimated_rates import NOT_POSTERIOR, ClaimedCounts
from trialwise.stats.finite import exact_tail, most_failing_successes, tail

_OBSERVED_RATE = "no-generalisation/observed-rate"
_WHOLE = "finite-corpus/exact-rate"
_PART = "finite-corpus/hypergeometric"


class Corpus(compliance.Compliance):
    """A required rate of an enumerated corpus, or of the trials alone; no population is sampled."""

    name = "CORPUS"
    may_be_withdrawn = False
    counts_rate = False
    question = "Is the required rate met in this corpus?"

    def plan(self, criterion: Criterion, situation: Situation) -> CriterionPlan | Refused:
        """Plan a part of the corpus, the whole of it, or trials that describe only themselves."""
        if situation.claim.population is PopulationClaim.NO_GENERALISATION:
            return situation.start_plan(
                criterion,
                procedure=self.name,
                decision_rule=_OBSERVED_RATE,
                trials=situation.fixed_trials(criterion) or situation.sampling.slots,
                curtailed=False,
            )
        return self._plan_corpus(criterion, situation)

    def _plan_corpus(self, criterion: Criterion, situation: Situation) -> CriterionPlan | Refused:
        """Plan trials of a finite corpus, of which each input is tried at most once."""
        required, size = known(criterion.at_least), len(situation.sampling.inputs)
        trials = situation.fixed_trials(criterion)
        planned = size if trials is None else trials
        if planned > size:
            return Refused(
                f"{planned} trials are more than the corpus's {size} inputs: a finite-corpus claim "
                "takes each at most once. Run at most this many, or claim these fixed inputs "
                "instead"
            )
        alpha = criterion.wrong_pass
        design = stats.finite_corpus_cutoff(required, planned, size, alpha=alpha)
        if design.cutoff is None and situation.verifies:
            return Refused(
                f"{planned} of {size} inputs cannot show a corpus rate of {required:g} "
                f"at confidence {criterion.confidence:g}; at least {design.minimum_trials} are "
                "needed"
            )
        whole = planned == size
        most, level = None, criterion.wrong_fail
        shows_less = situation.leaves_open(criterion) and not whole
        if shows_less:
            most = most_failing_successes(required, planned, size, alpha=level)
        return situation.start_plan(
            criterion,
            procedure=self.name,
            decision_rule=_WHOLE if whole else _PART,
            alpha=None if whole else alpha,
            trials=planned,
            cutoff=design.required_successes if whole else design.cutoff,
            design=design,
            # A rate of the whole corpus is known only once all of it was tried. Then there is no
            # level: nothing was sampled, so no sampling error can be limited.
            curtailed=situation.options.curtail and not whole,
            each_input=False,
            most_failing=most,
            fail_alpha=level if shows_less else None,
        )

    def conclude(self, plan: CriterionPlan, counts: Counts) -> Conclusion:
        """Decide by what the claim reaches: the corpus, or the run."""
        case = ClaimedCounts(plan, counts)
        if case.claim.population is PopulationClaim.NO_GENERALISATION:
            return _describe(case)
        return _conclude_corpus(case, plan)

    def complete(
        self, plan: CriterionPlan, conclusion: Conclusion, stop: StopReason, run: Plan
    ) -> Conclusion:
        """Add an interval while trials are missing: a binomial one, then the claim's own."""
        # No number of trials is advised: a corpus has no more inputs than it has.
        completed = Procedure.complete(self, plan, conclusion, stop, run)
        if getattr(completed.evidence, "interval", None) is not None:
            return completed
        is_whole, tally = stop is StopReason.COMPLETE, conclusion.tally
        found = None if is_whole else compliance.rate_interval(plan, tally, stop, run.rule)
        weighed = replace(CutoffEvidence.of(completed.evidence), interval=found)
        return replace(completed, evidence=weighed)

    def describe_rule(self, plan: CriterionPlan) -> str:
        """Say which count, or which observed rate, PASSes."""
        if plan.decision_rule == _OBSERVED_RATE:
            return f"PASS where the observed rate of {plan.trials} trials reaches the required one"
        return super().describe_rule(plan)

    def characterize(self, plan: CriterionPlan, intent: Intent) -> Characteristic:
        """Return the error of a part of the corpus; a rate that is counted has none."""
        if plan.alpha is None:
            whole = "counts the whole corpus and estimates nothing"
            reason = whole if plan.decision_rule == _WHOLE else "describes this run only"
            return Characteristic(uncounted=dict.fromkeys(Decision, reason))
        return limit_by_levels(plan)

    def knows_rate(self, finding: Finding) -> bool:
        """Return whether the whole corpus was tried."""
        return isinstance(finding.design, stats.ExactCorpusRate)

    def explain(self, finding: Finding) -> tuple[Section, ...]:
        """Explain a finding; the words are loaded for those who ask."""
        from trialwise.procedures.explained_cutoffs import explain_corpus

        return explain_corpus(finding)


PROCEDURE = Corpus()


def _conclude_corpus(case: ClaimedCounts, plan: CriterionPlan) -> Conclusion:
    k, n, N = case.tally.passed, case.tally.trials, case.inputs
    if any(trials > 1 for _, trials in case.counts.values()) or n > N:
        allowed = f"take each of the corpus's {N} inputs at most once"
        raise InvalidArgument("outcomes", f"{n} trials", allowed)
    if n == N:
        return _conclude_whole(case, N)
    # Of a corpus planned whole only a part is known where the analysis leaves out trials.
    planned = cast("stats.FiniteCorpusCutoff", plan.design)
    alpha = planned.alpha if plan.alpha is None else plan.alpha
    if n == 0:
        return case.conclude_nothing("")
    design = stats.finite_corpus_cutoff(case.required_rate, n, N, alpha=alpha)
    if design.cutoff is None:
        needed = f"at least {design.minimum_trials} of the corpus's {N} are needed"
        return case.conclude_nothing(needed)
    decision = Decision.PASS if k >= design.cutoff else Decision.FAIL
    # Hypergeometric and not binomial: what was tried cannot be drawn again (§8.4.6).
    limits = partial(stats.finite_corpus_interval, k, n, N, confidence=complement(alpha))
    low, interval, ground = limits(side="lower").interval.low, limits().interval, None
    if (level := plan.failing.fail_alpha) is not None:
        most = most_failing_successes(case.required_rate, n, N, alpha=level)
        if decision is Decision.FAIL and k > most:
            decision = Decision.INCONCLUSIVE
        upper = stats.finite_corpus_interval(k, n, N, confidence=complement(level), side="upper")
        confidence = complement(float(as_written(alpha) + as_written(level)))
        interval = replace(interval, low=low, high=upper.interval.high, confidence=confidence)
        if decision is not Decision.PASS:
            ground = compliance.SHOWN_BELOW if decision is Decision.FAIL else compliance.NOT_SHOWN
    fact = f"{k} of {n} successes, {design.cutoff} needed, in {n} of the corpus's {N} inputs"
    return case.conclude(
        decision,
        case.state(decision, fact),
        evidence=CutoffEvidence(
            design=None if design == plan.design else design,
            p_value=_p_value(k, design),
            lower_bound=low,
            interval=interval,
            ground=ground,
        ),
        null=f"fewer than {design.required_successes} of the corpus's {N} inputs succeed",
        alternative=f"at least {design.required_successes} of them do",
        confidence_statement=(
            f"If one success too few were in the corpus, this rule would falsely declare "
            f"compliance with probability {design.size:.4g}, exactly, provided that the inputs "
            "tried are a random part of it and that each answers another time as it did now. "
            f"{NOT_POSTERIOR}"
        ),
    )


def _p_value(successes: int, design: stats.FiniteCorpusCutoff) -> PValue:
    place = successes, design.trials, design.required_successes - 1, design.corpus_size
    return PValue(
        value=settled(tail(*place), design.alpha, partial(exact_tail, *place)),
        method="hypergeometric-upper-tail",
        tail="P_{M=M_req-1}(K >= K_c)",
    )


def _conclude_whole(case: ClaimedCounts, size: int) -> Conclusion:
    """Every input was tried: the rate is known, with nothing to infer."""
    k, needed = case.tally.passed, ceil_product(case.required_rate, size)
    return case.conclude(
        Decision.PASS if k >= needed else Decision.FAIL,
        f"{k} of the corpus's {size} inputs succeeded, {needed} needed.",
        evidence=CutoffEvidence(design=stats.exact_corpus_rate(k, size)),
        null="none: the corpus was tried whole",
        alternative="none: its rate is known, not estimated",
        confidence_statement=(
            "No error rate belongs to this: every input was tried, so nothing was sampled. It "
            "speaks of these answers to this corpus."
        ),
    )


def _describe(case: ClaimedCounts) -> Conclusion:
    """Describe the observed rate against the required one, and no word beyond the run."""
    k, n = case.tally.passed, case.tally.trials
    if n == 0:
        return case.conclude_nothing("")
    needed = ceil_product(case.required_rate, n)
    decision = Decision.PASS if k >= needed else Decision.FAIL
    nothing = "none: nothing beyond the run is claimed"
    return case.conclude(
        decision,
        f"{k} of {n} trials succeeded, {needed} needed for {case.target}: a description of this "
        "run, and of nothing else.",
        caution=None,
        label=f"{decision} (this run only)",
        null=nothing,
        alternative=nothing,
        confidence_statement="No error rate belongs to this: nothing beyond the run is claimed.",
    )
