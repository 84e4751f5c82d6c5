"""What the counts of two arms say of one criterion, by each of the tests that can be valid.

`procedures.comparison` says which test that is. `TESTS` says what each is about, for words and for
whoever reads an interval.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from trialwise.model.evidence import Tally
from trialwise.model.verdict import Decision
from trialwise.procedures.comparing.findings import ComparisonQuestion, Evidence, Question
from trialwise.procedures.comparing.pair_following import fit_rule
from trialwise.stats import paired
from trialwise.stats.confidence_sequences import anytime_p_value
from trialwise.stats.difference_bounds import bound_unpaired_difference, find_margin_p_value
from trialwise.stats.paired_rules import PairedConclusion, PairedRule, plan_paired_rule
from trialwise.stats.signed_ranks import weigh_net_wins
from trialwise.stats.unconditional import boschloo


class KnownTest(NamedTuple):
    """What a test is about, and what belongs to it."""

    knows_margin: bool = False
    """Whether it is about the margin of the question, and not about a difference from 0."""
    is_exact: bool = False
    """Whether its interval is exact, so that it agrees with the p-value of the test alone."""
    is_preference: bool = False
    """Whether a judge decided the pairs."""


#: By decision rule. Evidence without a rule was not tested.
TESTS: Mapping[str | None, KnownTest] = {
    None: KnownTest(),
    "paired/mcnemar-exact": KnownTest(is_exact=True),
    "paired/margin-exact": KnownTest(knows_margin=True, is_exact=True),
    "paired/sequential": KnownTest(knows_margin=True, is_exact=True),
    "paired/anytime-bet": KnownTest(),
    "paired/net-wins-of-inputs": KnownTest(),
    "unpaired/boschloo": KnownTest(is_exact=True),
    "unpaired/margin-exact": KnownTest(knows_margin=True, is_exact=True),
    "preference/sign": KnownTest(knows_margin=True, is_exact=True, is_preference=True),
    "preference/anytime-bet": KnownTest(is_preference=True),
    "preference/net-wins-of-inputs": KnownTest(is_preference=True),
    "preference/corrected": KnownTest(is_preference=True),
}

# --- Pairs ----------------------------------------------------------------------------------------


def weigh_pairs(
    outcomes: Sequence[tuple[bool, bool]],
    inputs: Sequence[str] | None,
    question: ComparisonQuestion,
    criterion: str,
    fixed_size: bool,
) -> Evidence:
    """Return the test of pairs that is valid for how they were made, apart from planned rules.

    Args:
        outcomes: Whether the control and whether the candidate passed, pair by pair.
        inputs: The input of each pair, where inputs are the units.
        question: What is asked.
        criterion: Of which criterion.
        fixed_size: Whether the number of pairs was settled before the first.
    """
    if not fixed_size:
        return weigh_stopped_pairs(outcomes, question)
    if inputs is not None:
        return weigh_inputs(outcomes, inputs)
    return weigh_planned_pairs(outcomes, question, criterion)


def weigh_planned_pairs(
    outcomes: Sequence[tuple[bool, bool]], question: ComparisonQuestion, criterion: str = ""
) -> Evidence:
    """Return the exact test of pairs (control passed, candidate passed) of a planned number.

    Without a margin it is McNemar's exact test, and with one the exact unconditional test of the
    margin.

    >>> found = weigh_planned_pairs([(False, True)] * 6 + [(True, True)] * 4, ComparisonQuestion())
    >>> found.p_value, found.favours_candidate
    (0.03125, True)
    """
    asked, margin = question.of_criterion(criterion)
    return _test_pairs(_count_pairs(outcomes), asked, margin, question.alpha, question.edition)


# The same counts are asked for by the verdict, by reports and by whoever compares again.
@lru_cache(maxsize=256)
def _test_pairs(
    pairs: paired.PairCounts, asked: Question, margin: float, alpha: float, edition: int
) -> Evidence:
    rule = plan_paired_rule(
        asked, margin=margin or None, alpha=alpha, pairs=pairs.pairs, edition=edition
    )
    return _state_conclusion(rule, rule.conclude_counts(pairs))


def weigh_followed_pairs(
    outcomes: Sequence[tuple[bool, bool]], rule: PairedRule, *, ran_all: bool
) -> Evidence:
    """Return what the rule that ended the runs says of pairs in the order of inputs.

    Args:
        outcomes: Whether the control and whether the candidate passed, pair by pair.
        rule: Planned before the first pair.
        ran_all: Whether every planned pair was made.

    >>> from trialwise.stats.paired_rules import plan_paired_rule
    >>> found = weigh_followed_pairs([(False, True)] * 20, plan_paired_rule(), ran_all=False)
    >>> found.favours_candidate, found.pairs.pairs < 20
    (True, True)
    """
    fitting = fit_rule(rule, len(outcomes), ran_all=ran_all)
    return _state_conclusion(rule, fitting.conclude(outcomes))


def _state_conclusion(rule: PairedRule, found: PairedConclusion) -> Evidence:
    passing, failing = (
        rule.find_p_values(found.used) if found.is_complete and found.used.pairs else (1.0, 1.0)
    )
    # Which of the two statements is nearer says what a small p-value means; a p-value that is twice
    # the smaller of two is valid for the pair (Bonferroni).
    p_value, passes = found.p_value, passing < failing
    if found.decision is Decision.PASS and not passes:
        # A small loss within the margin may be shown as well, and more surely. The rule lets the
        # margin count, so the p-value has to be that of the margin.
        p_value, passes = max(p_value, min(rule.alpha, 2 * passing)), True
    kind = "margin-exact" if rule.margin else "mcnemar-exact"
    return _weigh_pairs(
        found.used,
        decision_rule="paired/sequential" if rule.is_sequential else f"paired/{kind}",
        p_value=p_value,
        favours_candidate=found.used.only_b > found.used.only_a,
        favours_pass=passes,
        interval=found.interval,
    )


def weigh_stopped_pairs(
    outcomes: Sequence[tuple[bool, bool]], question: ComparisonQuestion
) -> Evidence:
    """Return the test of pairs in the order of inputs that a stop for any reason leaves valid.

    The wealth of a bet on each side, at evens whenever exactly one of the two passed; the smaller
    anytime p-value is doubled for having bet on both.

    >>> won = weigh_stopped_pairs([(False, True)] * 12, ComparisonQuestion())
    >>> won.p_value < 0.05 < weigh_stopped_pairs([(False, True)] * 6, ComparisonQuestion()).p_value
    True
    """
    pairs = _count_pairs(outcomes)
    # A stop at any moment is allowed: the wealth of a fair bet exceeds 1/p at any time with
    # probability p at most (Ville 1939). A fixed-sample p-value has no such property.
    wins = [candidate for control, candidate in outcomes if control is not candidate]
    # A pair that both passed or both failed says nothing about which arm is better.
    above = anytime_p_value(wins, 0.5, direction="above") if wins else 1.0
    below = anytime_p_value(wins, 0.5, direction="below") if wins else 1.0
    # Tango's interval for the candidate's rate minus the control's, which only describes here.
    found = paired.paired_difference_interval(
        pairs.both, pairs.only_b, pairs.only_a, pairs.neither, confidence=question.confidence
    )
    return _weigh_pairs(
        pairs,
        decision_rule="paired/anytime-bet",
        p_value=min(1.0, 2 * min(above, below)),
        favours_candidate=above < below,
        interval=found.after_early_stop(),
    )


def weigh_inputs(outcomes: Sequence[tuple[bool, bool]], inputs: Sequence[str]) -> Evidence:
    """Return the exact test of the net wins of each input, however often it was tried.

    >>> found = weigh_inputs([(False, True)] * 6, ["1", "1", "1", "2", "2", "2"])
    >>> found.inputs_won, found.p_value
    (2, 0.5)
    """
    net: Counter[str] = Counter()
    # Ten trials of one input are one fact about a population, not ten.
    for name, (control, candidate) in zip(inputs, outcomes, strict=True):
        net[name] += candidate - control
    found = weigh_net_wins(net.values())
    return _weigh_pairs(
        _count_pairs(outcomes),
        decision_rule="paired/net-wins-of-inputs",
        p_value=found.p_value,
        favours_candidate=found.net > 0,
        inputs_won=found.won,
        inputs_lost=found.lost,
    )


def _count_pairs(outcomes: Sequence[tuple[bool, bool]]) -> paired.PairCounts:
    return paired.pairs_from_outcomes(
        [one for one, _ in outcomes], [other for _, other in outcomes]
    )


def _weigh_pairs(pairs: paired.PairCounts, **given: Any) -> Evidence:
    """Return the evidence of pairs, with the counts of both sides."""
    ours, theirs = (
        Tally(trials=pairs.pairs, passed=pairs.both + alone)
        for alone in (pairs.only_a, pairs.only_b)
    )
    return Evidence(control=ours, candidate=theirs, pairs=pairs, **given)


def answer_by_direction(found: Evidence, asked: Question, margin: float) -> Evidence:
    """Return evidence that says what its direction means, where its test knows no margin.

    A difference from 0 answers most questions, but shows neither that a candidate is better by
    more than a margin nor that it is equivalent.

    Args:
        found: The evidence.
        asked: The question.
        margin: Its margin.

    >>> won = Evidence(control=None, candidate=None, favours_candidate=True)
    >>> answer_by_direction(won, "not-worse", 0.02).favours_pass
    True
    >>> answer_by_direction(won, "better", 0.02).favours_pass is None
    True
    """
    is_open = asked == "equivalent" or (asked == "better" and margin and found.favours_candidate)
    if found.favours_pass is not None or is_open:
        return found
    return replace(found, favours_pass=found.favours_candidate)


# --- No pairs -------------------------------------------------------------------------------------


def weigh_unpaired(
    control: Tally, candidate: Tally, question: ComparisonQuestion, criterion: str = ""
) -> Evidence:
    """Return the exact test of two separate runs, with its interval.

    Args:
        control: What was counted of the control.
        candidate: What was counted of the candidate.
        question: What is asked.
        criterion: Of which criterion.

    >>> found = weigh_unpaired(
    ...     Tally(trials=10, passed=1), Tally(trials=10, passed=9), ComparisonQuestion()
    ... )
    >>> found.favours_candidate, found.p_value < 0.01, found.interval.low > 0
    (True, True, True)
    """
    asked, margin = question.of_criterion(criterion)
    # Boschloo's test (1970) is exact for the sizes of the two runs, and never less powerful than
    # Fisher's, which also takes the total of passes as given.
    ours, theirs = (control.passed, control.trials), (candidate.passed, candidate.trials)
    alpha = question.alpha
    if margin:
        limits = (-margin, 0.0, margin)
        up = {t: find_margin_p_value(*ours, *theirs, limit=t) for t in limits}
        down = {t: find_margin_p_value(*theirs, *ours, limit=-t) for t in limits}
        if question.edition > 1 and asked == "equivalent":
            # The two ways to a FAIL share its error.
            up[margin], down[-margin] = 2 * up[margin], 2 * down[-margin]
        passing, failing = paired.list_statements(asked, margin)
        p_pass = max(down[-t] if mirrored else up[t] for mirrored, t in passing)
        p_fail = min(1.0, *(down[-t] if mirrored else up[t] for mirrored, t in failing))
    else:
        p_fail, p_pass = boschloo(*ours, *theirs).p_value, boschloo(*theirs, *ours).p_value
        up, down = {0.0: p_pass}, {0.0: p_fail}
    passes = p_pass < p_fail or 2 * p_pass <= alpha
    interval = bound_unpaired_difference(*ours, *theirs, alpha=alpha)
    low, high = interval
    # Each end lies on that side of a limit on which the tests place it.
    for t in up:
        low = max(low, math.nextafter(t, 2)) if up[t] <= alpha / 2 else min(low, t)
        high = min(high, math.nextafter(t, -2)) if down[t] <= alpha / 2 else max(high, t)
    return Evidence(
        control=control,
        candidate=candidate,
        decision_rule="unpaired/margin-exact" if margin else "unpaired/boschloo",
        p_value=min(1.0, 2 * (p_pass if passes else p_fail)),
        favours_candidate=theirs[0] * ours[1] > ours[0] * theirs[1],
        favours_pass=passes,
        interval=replace(interval, low=low, high=high),
    )
