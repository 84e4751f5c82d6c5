"""Findings corrected for having been decided together: a wrong PASS and a wrong FAIL are errors.

The PASSes of a family are tested together, then its FAILs, each at a share of the level that the
correction allows (`stats.multiplicity.list_shares`). What does not survive is INCONCLUSIVE, or a
FAIL (not shown) under `undecided: fail`. A corrected decision is never the opposite of the one that
the criterion would have alone, and no correction decides what is open alone.

- A fixed number of trials is decided again, by its own procedure, at the share of its level.
- A design that stops early has run at 1/M of its error limits. Where it stopped, its exact p-value
  over all ways in which it can end is held against the share, so that `holm` and `bh` also decide
  some of the ends that its boundaries leave open. What was cut short has a p-value of 1.
- Against a baseline only the FAIL is a statement: a drop is shown. A PASS says that the single test
  signals none, and stays; a FAIL that does not survive is INCONCLUSIVE.
- e-BH holds e-values against 1/share: of the counts for a rate, the betting capital for a mean,
  and 1/(2√p) for every other test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, count
from typing import TypeAlias, cast

from trialwise import stats
from trialwise.decimals import RELATIVE_BAND, complement
from trialwise.documents.numbers import as_percent
from trialwise.model.claim import Intent
from trialwise.model.evidence import Note, NoteKind
from trialwise.model.plan import CriterionPlan, Family, Plan
from trialwise.model.verdict import Caution, Decision, Finding
from trialwise.procedures.base import known
from trialwise.procedures.compliance import NOT_SHOWN, SHOWN_BELOW, decision_interval
from trialwise.procedures.composite import combine, state_inputs
from trialwise.procedures.registry import procedure_of
from trialwise.procedures.sequential import find_p_value, state_stop
from trialwise.stats.multiplicity import CLAIMS, list_shares
from trialwise.stats.sequential.design import Method, SequentialDesign


def correct_findings(
    findings: Sequence[Finding], plan: Plan, decide: Callable[[CriterionPlan], Finding]
) -> list[Finding]:
    """Correct the findings of a contract; each keeps what it would be on its own.

    Args:
        findings: As each was decided alone, those of a design that stops early at their share.
        plan: The run's, with its correction and the size of the family.
        decide: Decides a criterion of the run by another plan than its own.
    """
    if plan.correction == "none" or plan.family_size < 2:
        return list(findings)
    if all(one.plan.others.family is None for one in findings):
        return correct_passes(findings, plan)
    return _Correction(findings, plan, decide).correct()


class _Correction:
    """The decisions of a contract that are corrected together, at every share of their levels."""

    def __init__(
        self, findings: Sequence[Finding], plan: Plan, decide: Callable[[CriterionPlan], Finding]
    ) -> None:
        self._findings, self._plan, self._decide = findings, plan, decide
        self._members = [one for one in findings if one.plan.others.family is not None]
        self._guarantee = describe_guarantee([one.plan.others.family for one in self._members])  # type: ignore[misc]
        self._at_share: dict[float, list[Finding]] = {}
        self._singles = [
            _decide_counts(part, 1.0, plan.intent_of(one.plan))
            if one.plan.counting.stops_early
            else part
            for one in self._members
            for part in _split(one)
        ]

    def correct(self) -> list[Finding]:
        """Return every finding as the family decides it."""
        shares = {side: self._find_shares(side) for side in (Decision.PASS, Decision.FAIL)}
        places, corrected = count(), []
        for one in self._findings:
            if one.plan.others.family is not None:
                parts = tuple(self._correct(next(places), shares) for _ in _split(one))
                corrected.append(_combine_inputs(one, parts) if one.by_input else parts[0])
            else:
                corrected.append(one)
        return corrected

    def _find_shares(self, side: Decision) -> tuple[float, ...]:
        """Find the shares of the level at which one of the two statements is tested."""
        places = range(len(self._singles))
        return list_shares(
            self._plan.correction,
            len(places),
            self._plan.family_size,
            lambda share: sum(self._shows(side, place, share) for place in places),
        )

    def _shows(self, side: Decision, place: int, share: float) -> bool:
        """Return whether a member shows a statement at a share of its level, as it does alone."""
        single = self._singles[place]
        if single.decision is not side or not _is_shown(side, single):
            return False
        return _is_shown(side, self._list_at(share)[place])

    def _list_at(self, share: float) -> list[Finding]:
        """List the findings of all members at a share of their levels."""
        if share not in self._at_share:
            parts = (self._decide_at(one, share) for one in self._members)
            self._at_share[share] = [*chain.from_iterable(parts)]
        return self._at_share[share]

    def _decide_at(self, finding: Finding, share: float) -> Sequence[Finding]:
        plan, by_evidence = finding.plan, self._plan.correction == "e-bh"
        procedure = procedure_of(finding)
        counts_rate = _has_cutoff(finding) and plan.judging.errors is None
        if plan.counting.stops_early or (by_evidence and counts_rate):
            intent = self._plan.intent_of(plan)
            decide = partial(_decide_counts, share=share, intent=intent, by_evidence=by_evidence)
            return [decide(part) for part in _split(finding)]
        # A p-value is an e-value of 1/(2√p); that of a mean is one already.
        is_calibrated = by_evidence and not procedure.decides_mean
        scaled = procedure.scale_levels(
            plan, lambda level: (share * level) ** 2 / 4 if is_calibrated else share * level
        )
        return [_restore_plan(part, plan, scaled) for part in _split(self._decide(scaled))]

    def _correct(self, place: int, shares: dict[Decision, tuple[float, ...]]) -> Finding:
        single = self._singles[place]
        family = known(single.plan.others.family)
        if single.decision is None or single.words.label or _is_cut_short(single):
            return replace(single, single_decision=single.decision)
        chosen = {
            side: next((one for one in steps if self._shows(side, place, one)), steps[-1])
            for side, steps in shares.items()
        }
        shown = next((side for side in chosen if self._shows(side, place, chosen[side])), None)
        at = {side: self._list_at(share)[place] for side, share in chosen.items()}
        passes_alone = procedure_of(single).compares_baseline and single.decision is Decision.PASS
        if shown is not None:
            found = replace(at[shown], decision=shown, words=single.words)
        elif passes_alone:
            found = single
        else:
            is_open = single.decision is Decision.INCONCLUSIVE or not family.fails_open
            found = _leave_open(
                self._list_at(min(chosen.values()))[place],
                Decision.INCONCLUSIVE if is_open else Decision.FAIL,
            )
        low, high = at[Decision.PASS].interval, at[Decision.FAIL].interval
        if low and high and not procedure_of(single).compares_baseline:
            joined = _join(low, high)
            found = replace(found, evidence=replace(found.evidence, interval=joined))  # type: ignore[call-arg]
            if procedure_of(single).decides_mean and found.scores is not None:
                found = replace(found, scores=replace(found.scores, interval=joined))
        return self._describe(found, single, chosen)

    def _describe(self, found: Finding, single: Finding, chosen: dict[Decision, float]) -> Finding:
        """Say what the family decides and guarantees, and what the criterion would be alone."""
        family = known(found.plan.others.family)
        levels = {
            Decision.PASS: family.wrong_pass * chosen[Decision.PASS],
            Decision.FAIL: family.wrong_fail * chosen[Decision.FAIL],
        }
        if procedure_of(found).compares_baseline:
            del levels[Decision.PASS]
        said = " and ".join(f"{side} at {100 * level:.3g} %" for side, level in levels.items())
        alone = str(single.decision)
        if single.decision is found.decision and _find_ground(single) != _find_ground(found):
            alone += f" ({_find_ground(single)})"
        text = (
            f"{found.decision} as one of {family.decisions} decisions together "
            f"({family.correction}: {said}); on its own: {alone}"
        )
        return replace(
            found,
            single_decision=single.decision,
            notes=(*single.notes, Note(kind=NoteKind.QUALIFICATION, text=text)),
            words=replace(found.words, confidence_statement=self._guarantee),
        )


def describe_guarantee(families: Sequence[Family]) -> str:
    """Say which error of a family is controlled, and what that assumes.

    Args:
        families: As each of its members knows it; where levels differ, the largest is kept.
    """
    label, controls, dependence = CLAIMS[families[0].correction]
    passes = as_percent(max(one.wrong_pass for one in families))
    fails = as_percent(max(one.wrong_fail for one in families))
    together = f"the {families[0].decisions} decisions that are corrected together ({label})"
    said = f"Any of {together} is a wrong PASS in at most {passes} of runs, and any a wrong FAIL"
    said += f" in at most {fails}"
    if controls == "FDR":
        said = (
            f"Of the PASSes among {together} at most {passes} are wrong on average, and of the "
            f"FAILs at most {fails}: a false discovery rate, not the chance of any wrong decision"
        )
    return f"{said}. {dependence} It is not the probability that this verdict is wrong."


def _split(finding: Finding) -> tuple[Finding, ...]:
    return finding.by_input or (finding,)


def _has_cutoff(finding: Finding) -> bool:
    """Return whether a count of independent trials decides, so that it has an e-value."""
    return procedure_of(finding).counts_rate and finding.design is not None


def _is_cut_short(finding: Finding) -> bool:
    return finding.stop is not None and finding.stop.is_premature


def _find_ground(finding: Finding) -> str | None:
    return cast("str | None", getattr(finding.evidence, "ground", None))


def _is_shown(side: Decision, finding: Finding) -> bool:
    """Return whether a finding makes a statement that has an error, and not only a decision."""
    procedure, interval = procedure_of(finding), finding.interval
    if finding.words.label or _is_cut_short(finding):
        return False
    if side is Decision.PASS:
        return finding.decision is side and not procedure.compares_baseline
    if finding.plan.judging.errors is not None:
        return finding.decision is side
    ground, required = _find_ground(finding), finding.threshold.required_rate
    if ground is None and procedure.decides_fixed_rate and interval and required:
        ground = SHOWN_BELOW if interval.high < required else NOT_SHOWN
    if finding.decision is side:
        return ground != NOT_SHOWN
    # So few trials cannot PASS at this level, and may FAIL.
    return finding.caution is Caution.FEASIBILITY_REFUSED and ground == SHOWN_BELOW


def _restore_plan(finding: Finding, plan: CriterionPlan, scaled: CriterionPlan) -> Finding:
    """Return a finding of a scaled plan as one of the plan; it keeps what it was decided by."""
    evidence = finding.evidence
    if getattr(evidence, "design", plan.design) is None and scaled.design != plan.design:
        evidence = replace(evidence, design=scaled.design)  # type: ignore[call-arg]
    return replace(finding, plan=plan, evidence=evidence)


_Weight: TypeAlias = tuple[float, float, Callable[..., stats.Interval]]
"""The p-values, or 1/e, against rates that a PASS rules out and against those that are high enough,
and the interval by what is decided."""


def _decide_counts(
    finding: Finding, share: float, intent: Intent, *, by_evidence: bool = False
) -> Finding:
    """Decide where counting ended at a share of the undivided levels, by p-values or e-values."""
    family, tally = known(finding.plan.others.family), finding.tally
    # What was cut short, or taken back for another reason, shows nothing.
    if _is_cut_short(finding) or not tally.trials:
        return finding
    end = Decision.INCONCLUSIVE
    boundaries = cast("SequentialDesign", finding.design)
    if finding.plan.counting.stops_early:
        end = boundaries.decide(tally.trials, tally.failed) or end
        if end is not finding.decision:
            return finding
    levels = share * family.wrong_pass, share * family.wrong_fail
    above, below, bound = (_weigh_evidence if by_evidence else _weigh_stop)(finding, levels)
    decision = Decision.INCONCLUSIVE
    if end is not Decision.FAIL and above <= levels[0] * (1 + RELATIVE_BAND):
        decision = Decision.PASS
    elif end is not Decision.PASS and below <= levels[1] * (1 + RELATIVE_BAND):
        decision = Decision.FAIL
    is_open = decision is Decision.INCONCLUSIVE
    given: dict[str, object] = {"interval": bound(decision=decision)}
    if finding.plan.counting.stops_early:
        given["stopped_p_value"] = find_p_value(decision, tally, boundaries)
    elif decision is Decision.PASS:
        given["ground"] = None
    else:
        given["ground"] = NOT_SHOWN if is_open else SHOWN_BELOW
    restated = replace(finding, evidence=replace(finding.evidence, **given))  # type: ignore[arg-type]
    if decision is finding.decision:
        return restated
    statement = (
        f"{tally.passed} of {tally.trials} passed: too close to "
        f"{as_percent(finding.threshold.required_rate or 0)} to tell as one of "
        f"{family.decisions} decisions."
    )
    if finding.plan.counting.stops_early and not is_open:
        statement = state_stop(decision, tally, boundaries, intent)
    caution = None if is_open else Caution.for_decision(decision, finding.observed_rate)
    words = replace(finding.words, statement=statement, advice="")
    return replace(restated, decision=decision, caution=caution, words=words)


def _weigh_stop(finding: Finding, levels: tuple[float, float]) -> _Weight:
    """Weigh the end of a design that stops early, over all ways in which it can end."""
    from trialwise.stats.sequential.stopped_rates import decision_interval, stopped_tails

    design = cast("SequentialDesign", finding.design)
    n, f = finding.tally.trials, finding.tally.failed
    above = stopped_tails(design, n, f, design.p1).good
    below = stopped_tails(design, n, f, design.p0).bad
    # The tail of an end at a boundary is at most the level that the boundary was made for.
    if design.method is not Method.WALD:
        # An error may exceed its level by rounding; Wald's are approximate.
        above = min(above, design.beta) if finding.decision is Decision.PASS else above
        below = min(below, design.alpha) if finding.decision is Decision.FAIL else below
    return above, below, partial(decision_interval, design, n, f, levels=levels)


def _weigh_evidence(finding: Finding, levels: tuple[float, float]) -> _Weight:
    """Weigh counts by e-values, which hold wherever counting stopped."""

    k, n, threshold = finding.tally.passed, finding.tally.trials, finding.threshold
    required = known(threshold.required_rate)
    shown = threshold.alternative_rate or required
    low = stats.anytime_interval(k, n, confidence=1 - levels[0], side="lower")
    high = stats.anytime_interval(k, n, confidence=1 - levels[1], side="upper")
    interval = replace(_join(low, high), confidence=complement(sum(levels)))
    # An e-value may be 0 in doubles, and 1/e is then as large as no evidence can be.
    return (
        1 / max(1e-300, stats.e_value(k, n, shown, direction="above")),
        1 / max(1e-300, stats.e_value(k, n, required, direction="below")),
        lambda decision: interval,  # noqa: ARG005 (it agrees by itself)
    )


def _leave_open(finding: Finding, decision: Decision) -> Finding:
    """Return a finding that shows nothing at the level of the family."""
    evidence = finding.evidence
    if _find_ground(finding) is not None:
        evidence = replace(evidence, ground=NOT_SHOWN)  # type: ignore[call-arg]
    # What is known of acting on another decision does not carry over to this one.
    caution = finding.caution if finding.decision is decision else None
    return replace(finding, decision=decision, evidence=evidence, caution=caution)


def _join(low: stats.Interval, high: stats.Interval) -> stats.Interval:
    """Return the interval with the low end of one and the high end of the other."""
    levels = [one.confidence for one in (low, high)]
    confidence = None if None in levels else math.fsum(levels) / 2  # type: ignore[arg-type]
    return stats.Interval(low.low, high.high, confidence=confidence, method=low.method)


def _combine_inputs(finding: Finding, parts: tuple[Finding, ...]) -> Finding:
    """Return the finding over all inputs, each as the family decides it."""
    decision = combine(part.decision or Decision.INCONCLUSIVE for part in parts)
    single = combine(part.single_decision or Decision.INCONCLUSIVE for part in parts)
    statement = state_inputs(parts, decision)
    if decision is not single:
        statement += f" On its own it would be {single}."
    said = parts[0].confidence_statement
    words = replace(finding.words, statement=statement, confidence_statement=said)
    return replace(finding, by_input=parts, decision=decision, single_decision=single, words=words)


# --- How plans from before `CriterionPlan.family` are corrected: a PASS only, never a FAIL --------
#
# Records of such plans are decided again by it.


def correct_passes(findings: Sequence[Finding], plan: Plan) -> list[Finding]:
    """Correct the findings of a contract; each keeps what it would be on its own."""
    streams = [part for one in findings for part in one.by_input or (one,)]
    fixed = [
        (part, part.p_value.value)
        for part in streams
        if part.plan.others.uncorrected is None and part.p_value is not None
    ]
    adjusted = dict(zip((id(part) for part, _ in fixed), _adjust(fixed, plan), strict=True))
    return [_correct(one, plan, adjusted) for one in findings]


def _adjust(fixed: Sequence[tuple[Finding, float]], plan: Plan) -> Sequence[float]:
    """Return the adjusted p-value of each, where alpha stands for 1: at most 1 is a rejection."""
    if not fixed:
        return ()
    # A p-value is measured by its own criterion's level, and the family's other members, which
    # have none or are decided elsewhere, take their shares of the level.
    level = 0.05
    share = level * len(fixed) / plan.family_size
    if plan.correction == "e-bh":
        evidence = [_weigh(one, p) * (one.alpha or 1.0) / level for one, p in fixed]
        return [value / share for value in stats.e_bh(evidence, alpha=share).adjusted]
    ratios = [min(1.0, level * p / (one.alpha or 1.0)) for one, p in fixed]
    found = stats.adjust(ratios, method=plan.correction, alpha=share)
    return [value / share for value in found.adjusted]


def _weigh(finding: Finding, p_value: float) -> float:
    if _has_cutoff(finding):
        tally, design = finding.tally, cast("stats.ComplianceCutoff", finding.design)
        return stats.fixed_e_value(tally.passed, tally.trials, design.required_rate)
    return stats.calibrated_e_value(p_value)


def _correct(finding: Finding, plan: Plan, adjusted: dict[int, float]) -> Finding:
    single, decision, evidence = finding.decision, finding.decision, finding.evidence
    parts, statement = finding.by_input, finding.statement
    if parts:
        parts = tuple(_correct(part, plan, adjusted) for part in parts)
        single = combine(part.single_decision or Decision.INCONCLUSIVE for part in parts)
        decision = combine(part.decision or Decision.INCONCLUSIVE for part in parts)
    elif finding.plan.others.uncorrected is not None:
        single = finding.single_decision
    elif id(finding) not in adjusted or single not in (Decision.PASS, Decision.FAIL):
        return finding
    elif adjusted[id(finding)] > 1:
        # Against a baseline a small p-value FAILs, and a PASS stays; of a required rate it PASSes.
        procedure = procedure_of(finding)
        decision = Decision.PASS if procedure.compares_baseline else Decision.FAIL
        if decision is not single:
            statement = f"{statement} Corrected, it is a {decision}."
        if decision is Decision.FAIL is not single and procedure.decides_fixed_rate:
            # Its interval has the family's share of the level on each side, and agrees again.
            share = replace(finding.plan, alpha=(finding.alpha or 1.0) / plan.family_size)
            interval = decision_interval(share, finding.tally, plan.rule)
            evidence = replace(evidence, interval=interval, ground=NOT_SHOWN)  # type: ignore[call-arg]
    text = (
        f"{decision} as one of {plan.family_size} decisions together ({plan.correction}); on its "
        f"own: {single}"
    )
    return replace(
        finding,
        by_input=parts,
        decision=decision,
        evidence=evidence,
        single_decision=single,
        notes=(*finding.notes, Note(kind=NoteKind.QUALIFICATION, text=text)),
        words=replace(finding.words, statement=statement),
    )
