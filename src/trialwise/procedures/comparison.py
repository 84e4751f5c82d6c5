"""Is a candidate better than the control? Two or more arms, pair by pair, from plan to explanation.

A comparison is a procedure over arms: every arm is a run on the same inputs, and each criterion of
every two arms is a test. `COMPARISON` plans the rule of each test, decides from the records of the
runs alone, and explains what it found. The types are in `comparing.findings`, and the chances of
each verdict in `sizing.paired_sizing`.

How the pairs were made says which test is valid:

- A number of trials settled beforehand: McNemar's exact test on the discordant pairs. It is exact
  where the two are equally good on every input; where they trade inputs, each better on some, the
  count of wins varies less than it assumes, and the level is kept with room to spare.
- Runs that stopped by a rule which was planned beforehand: that rule, on the pairs in the order of
  inputs.
- A run that stopped because of what it saw: a bet on the discordant pairs in the order of inputs,
  whose anytime p-value no stopping can bias.
- A claim about a population whose inputs were repeated: inputs are the units, by their net wins.
- No pairs: Boschloo's test in both directions, on all trials of the two runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from math import ceil
from typing import TYPE_CHECKING

from trialwise.errors import InvalidArgument
from trialwise.model.claim import PopulationClaim
from trialwise.model.plan import Plan
from trialwise.model.verdict import Decision
from trialwise.procedures.comparing import assessment, words
from trialwise.procedures.comparing.amount_types import AmountsFound
from trialwise.procedures.comparing.amounts import find_amounts
from trialwise.procedures.comparing.evidence import TESTS
from trialwise.procedures.comparing.findings import (
    ArmRun,
    ComparedArm,
    ComparisonFinding,
    ComparisonQuestion,
    ComparisonVerdict,
    Contrast,
    ValidityCheck,
)
from trialwise.procedures.comparing.pair_following import TestRules, list_tests
from trialwise.procedures.comparing.pairing import check_validity
from trialwise.procedures.composite import combine
from trialwise.stats.multiplicity import Correction, adjust
from trialwise.stats.paired import minimum_discordant
from trialwise.stats.paired_rules import PairedRule, plan_paired_rule

if TYPE_CHECKING:
    from trialwise.stats.sequential.shipped_designs import DesignCache

#: The rates that the rule which ships expects: 80 % and 90 %, passed independently of each other.
_EXPECTED = (0.8, 0.9)
#: So many times the expected pairs up to the last look: more pairs would add no power.
_ROOM = 1.1


class ArmComparison:
    """Whether candidates differ from a control, decided pair by pair."""

    question = "Is a candidate better or worse than the control?"

    def plan(
        self,
        plans: Sequence[Plan],
        labels: Sequence[str],
        question: ComparisonQuestion,
        *,
        rates: tuple[float, float] | None = None,
        max_pairs: int | None = None,
        cache: DesignCache | None = None,
    ) -> TestRules:
        """Plan the sequential rule of every test, each at its share of the level of all tests.

        Args:
            plans: The plans of the arms' runs, the control's first; their sizes play no part.
            labels: The labels of the arms.
            question: What is asked.
            rates: The rates that are expected of the control and of a candidate.
            max_pairs: The most pairs; by default as many as help: more would add no power.
            cache: Where boundaries that were searched for are kept.

        Returns:
            Nothing where a test has no sequential rule, so that the number of pairs is fixed.
        """
        # Repeats of an input are one unit for a population, and no test is made without a claim.
        unfit = (PopulationClaim.SUPERPOPULATION, PopulationClaim.NO_GENERALISATION)
        if any(plan.claim.population in unfit for plan in plans):
            return {}
        advisory = {
            one.criterion for plan in plans for one in plan.criteria if one.standing.advisory
        }
        # What only advises ends no comparison, and takes no part of the level.
        tests = [one for one in list_tests(plans, labels, question) if one[2] not in advisory]
        # Boundaries are fixed before the first pair, when nobody knows which tests Holm would ease:
        # each gets Bonferroni's share, and Holm goes over the p-values at the end.
        share = 1 if question.correction == "none" else max(1, len(tests))
        planned: dict[tuple[str, float], PairedRule] = {}
        for asked, margin in {question.of_criterion(name) for *_, name in tests}:
            try:
                rule = plan_paired_rule(
                    asked,
                    margin=margin or None,
                    alpha=question.alpha / share,
                    rates=rates,
                    max_pairs=max_pairs,
                    cache=cache,
                )
            except InvalidArgument as refused:
                if refused.argument == "margin":
                    return {}
                raise
            planned[asked, margin] = limit_pairs(rule, rates)
        return {test: planned[question.of_criterion(test[2])] for test in tests}

    def decide(
        self,
        arms: Sequence[ArmRun],
        question: ComparisonQuestion | None = None,
        rules: TestRules | None = None,
        preferences: Sequence[assessment.PreferenceVotes] = (),
    ) -> ComparisonVerdict:
        """Decide from the records of the runs alone, so that anybody can compare them again.

        Args:
            arms: Two or more; the first is the control.
            question: What is asked, and how surely it is to be answered.
            rules: The rules that the runs were made by; None where their sizes were fixed.
            preferences: What a judge preferred in each pair of replies, for every two arms.

        Raises:
            InvalidArgument: The runs make different claims or are analysed differently.
        """
        asked, rules = question or ComparisonQuestion(), rules or {}
        _check_alike(arms)
        control = arms[0].record
        assessed = [
            assessment.assess_criterion(
                name, one, other, asked, rules.get((one.label, other.label, name))
            )
            for one, other in asked.couple_arms(arms)
            for name in _list_criteria(one, other)
        ]
        # Criteria of one experiment share its pairs, which are checked and measured once.
        paired = [(found, one) for found, one in assessed if one is not None]
        pairings = list({_locate(found): pairing for found, pairing in paired}.values())
        checks = check_validity(pairings, control.plan.analysis)
        # A verdict is withheld from every criterion whose pairs were thinned out in one arm.
        unfair = {_locate(one): one.statement for one in checks if one.withholds}
        votes = [assessment.assess_preference(one, asked) for one in preferences]
        findings = _conclude(
            [
                replace(one, obstacle=one.obstacle or unfair.get(_locate(one), ""))
                for one, _ in (*assessed, *votes)
            ],
            asked,
        )
        named = [(found.criterion, one) for found, one in paired]
        amounts = find_amounts(arms, pairings, named, confidence=asked.confidence)
        summaries = tuple(one.summary for one in pairings)
        inputs = sum(len(one.input_ids) for one in control.plan.experiments)
        return ComparisonVerdict(
            arms=tuple(map(_describe_arm, arms)),
            decision=combine(one.decision for one in findings if not one.advisory)
            or Decision.INCONCLUSIVE,
            findings=findings,
            **{one.name: getattr(amounts, one.name) for one in fields(AmountsFound)},
            pairings=summaries,
            checks=checks,
            preferences=tuple(described for _, described in votes),
            question=asked,
            analysis=control.plan.analysis.value,
            about=control.plan.claim.about(inputs),
            multiplicity=words.state_family(
                [one.p_value or 0.0 for one in findings if _is_tested(one)], asked
            ),
            statement=words.state_comparison(arms, findings, checks, asked),
            caveats=tuple(words.list_caveats(arms, summaries, checks)),
        )

    def explain(self, verdict: ComparisonVerdict) -> tuple[str, ...]:
        """Say what each criterion came to and why, and what qualifies it.

        Args:
            verdict: What was concluded.
        """
        notes = []
        for one in verdict.findings:
            whose = (
                f"{one.criterion}, {one.arm}: " if len(verdict.arms) > 2 else f"{one.criterion}: "
            )
            head = whose if len(verdict.findings) > 1 else ""
            notes += [f"{head}{note}" for note in (one.statement, *one.caveats) if note]
        return tuple(filter(None, dict.fromkeys((*notes, *verdict.caveats, verdict.multiplicity))))


COMPARISON = ArmComparison()


def limit_pairs(rule: PairedRule, rates: tuple[float, float] | None) -> PairedRule:
    """Return a rule that ends also where pairs are rarely discordant.

    Args:
        rule: One without a limit on pairs gets one; more pairs would add no power.
        rates: The rates that are expected of the control and of a candidate.
    """
    if rule.max_pairs is not None:
        return rule
    first, second = rates or _EXPECTED
    # As for arms that pass independently: arms that fail together reach the limit undecided more
    # often, since their pairs are rarely discordant.
    discordant = first * (1 - second) + second * (1 - first)
    # What the rule would need if no pair decided.
    boundaries = getattr(rule, "boundaries", None)
    most = 100 if boundaries is None else boundaries.cap
    return replace(rule, max_pairs=ceil(_ROOM * most / discordant))


def _list_criteria(*arms: ArmRun) -> Iterable[str]:
    return dict.fromkeys(one.criterion for arm in arms for one in arm.record.plan.criteria)


def _locate(found: ComparisonFinding | ValidityCheck) -> tuple[str, str, str]:
    return found.against, found.arm, found.experiment


def _check_alike(arms: Sequence[ArmRun]) -> None:
    if len(arms) < 2:
        raise InvalidArgument("arms", [one.label for one in arms], "be at least two")
    ours, *others = (one.record.plan for one in arms)
    for theirs in others:
        if ours.analysis is not theirs.analysis:
            both = [str(one.analysis) for one in (ours, theirs)]
            raise InvalidArgument("analysis", both, "be one for both runs")
        claims = [
            (one.claim.population.value, one.claim.population_name, one.claim.estimand.value)
            for one in (ours, theirs)
        ]
        if claims[0] != claims[1]:
            allowed = "be one for both runs: rates of different things have no difference"
            raise InvalidArgument("claim", claims, allowed)


def _describe_arm(arm: ArmRun) -> ComparedArm:
    plan = arm.record.plan
    return ComparedArm(
        label=arm.label,
        contract=plan.contract,
        run_id=arm.record.run_id,
        seed=plan.seed,
        factors=plan.factors,
        spending=arm.record.verdict.spending,
    )


# --- What is concluded, once all evidence is known ------------------------------------------------


def _is_tested(finding: ComparisonFinding) -> bool:
    """Return whether a criterion takes part in the family of tests.

    What only advises is not part of it: it changes no other test, and none changes it.
    """
    return finding.p_value is not None and not finding.obstacle and not finding.advisory


def _conclude(
    assessed: Sequence[ComparisonFinding], asked: ComparisonQuestion
) -> tuple[ComparisonFinding, ...]:
    """Conclude every criterion beside all other tests."""
    known = dict.fromkeys(one.criterion for one in assessed)
    for name in asked.guardrails:
        if name not in known:
            raise InvalidArgument("guardrails", name, f"name a criterion: {', '.join(known)}")
    # A criterion with an obstacle made no test: counting it would take level from the others.
    tested = [one.p_value or 0.0 for one in assessed if _is_tested(one)]
    levels = iter(adjust_family(tested, method=asked.correction, alpha=asked.alpha))
    fewest = fewest_discordant(asked.alpha, asked.correction, len(tested))
    concluded = []
    for one in assessed:
        # What only advises states its own p-value and takes no level from the others.
        alone = one.p_value if one.advisory and not one.obstacle else None
        adjusted = next(levels) if _is_tested(one) else alone
        concluded.append(_conclude_criterion(one, asked, adjusted, fewest))
    return tuple(concluded)


def _conclude_criterion(
    found: ComparisonFinding, asked: ComparisonQuestion, adjusted: float | None, fewest: int
) -> ComparisonFinding:
    # Where no difference is shown, none is ruled out either: absence of evidence is not evidence of
    # absence (Altman and Bland 1995).
    contrast, decision = Contrast.NOT_TOLD_APART, Decision.INCONCLUSIVE
    if adjusted is not None and adjusted <= asked.alpha:
        contrast = _find_contrast(found)
        if found.favours_pass is not None:
            decision = Decision.PASS if found.favours_pass else Decision.FAIL
    concluded = replace(found, contrast=contrast, decision=decision, adjusted_p_value=adjusted)
    return replace(
        concluded,
        statement=words.state_finding(concluded, fewest),
        caveats=(
            *(f"Advisory: {reason}." for reason in found.advisory),
            *found.caveats,
            *words.list_test_caveats(concluded),
        ),
    )


def _find_contrast(found: ComparisonFinding) -> Contrast:
    """Return whether a difference from 0 is shown, beyond what was asked."""
    if found.margin and TESTS[found.decision_rule].knows_margin:
        # The test is about the margin; where the difference lies, its exact interval says.
        low, high = found.interval or (0.0, 0.0)
        if low <= 0 <= high:
            return Contrast.NOT_TOLD_APART
        return Contrast.BETTER if low > 0 else Contrast.WORSE
    return Contrast.BETTER if found.favours_candidate else Contrast.WORSE


def adjust_family(
    p_values: Sequence[float], *, method: Correction, alpha: float
) -> tuple[float, ...]:
    """Return the smallest level of all tests together at which each one states something.

    Args:
        p_values: Of each test: twice the p-value of the side that it speaks for.
        method: How the tests share the level.
        alpha: The level.

    >>> adjust_family([0.01, 0.02], method="holm", alpha=0.05)
    (0.02, 0.03)
    """
    if method != "holm":
        return adjust(p_values, method=method, alpha=alpha).adjusted
    # The other side of each test states nothing; as 1 it only takes its place in the family.
    sides = [*(one / 2 for one in p_values), *(1.0 for _ in p_values)]
    return adjust(sides, method=method, alpha=alpha).adjusted[: len(p_values)]


def fewest_discordant(alpha: float, correction: Correction, criteria: int) -> int:
    """Return the fewest discordant pairs with which any of several criteria could be told apart.

    >>> fewest_discordant(0.05, "holm", 1), fewest_discordant(0.05, "holm", 3)
    (6, 7)
    """
    tests = max(1, criteria)
    # Holm's first step is Bonferroni's: where that fails, none of the easier ones is taken.
    # Benjamini and Yekutieli (2001) divide the level by a sum, for any dependence of the tests.
    harmonic = sum(1 / k for k in range(1, tests + 1))
    shares = {"holm": tests, "bonferroni": tests, "by": harmonic}
    return minimum_discordant(alpha / shares.get(correction, 1))
