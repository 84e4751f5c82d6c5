"""What pairs say of one criterion, by each of the tests that can be valid for them.

`change_assessment` says which test that is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from trialwise.model.tally import Tally
from trialwise.model.verdict import Decision
from trialwise.procedures.comparing.comparison_findings import (
    ComparisonQuestion,
    Evidence,
    Question,
)
from trialwise.procedures.comparing.pair_following import conclude_path
from trialwise.stats.confidence_sequences import anytime_p_value
from trialwise.stats.net_wins import weigh_net_wins
from trialwise.stats.paired import (
    PairCounts,
    paired_difference_interval,
    pairs_from_outcomes,
)
from trialwise.stats.paired_rules import PairedConclusion, PairedRule, plan_paired_rule
from trialwise.stats.result_types import Interval


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
    pairs: PairCounts, asked: Question, margin: float, alpha: float, edition: int
) -> Evidence:
    rule = plan_paired_rule(
        asked, margin=margin or None, alpha=alpha, pairs=pairs.pairs, edition=edition
    )
    return _state_conclusion(rule, rule.conclude_counts(pairs))


def _state_conclusion(rule: PairedRule, found: PairedConclusion) -> Evidence:
    passing, failing = (
        rule.find_p_values(found.used) if found.is_complete and found.used.pairs else (1.0, 1.0)
    )
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
    return _state_conclusion(rule, conclude_path(rule, outcomes, ran_all=ran_all))


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
    wins = [candidate for control, candidate in outcomes if control is not candidate]
    above = anytime_p_value(wins, 0.5, direction="above") if wins else 1.0
    below = anytime_p_value(wins, 0.5, direction="below") if wins else 1.0
    found = _interval(pairs, question.confidence)
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


def _count_pairs(outcomes: Sequence[tuple[bool, bool]]) -> PairCounts:
    return pairs_from_outcomes([one for one, _ in outcomes], [other for _, other in outcomes])


def _weigh_pairs(pairs: PairCounts, **given: Any) -> Evidence:
    """Return the evidence of pairs, with the counts of both sides."""
    ours, theirs = (
        Tally(trials=pairs.pairs, passed=pairs.both + alone)
        for alone in (pairs.only_a, pairs.only_b)
    )
    return Evidence(control=ours, candidate=theirs, pairs=pairs, **given)


def _interval(pairs: PairCounts, confidence: float) -> Interval:
    """Tango's, for the candidate's rate minus the control's."""
    return paired_difference_interval(
        pairs.both, pairs.only_b, pairs.only_a, pairs.neither, confidence=confidence
    )


def answer_by_direction(found: Evidence, asked: Question, margin: float) -> Evidence:
    """Return evidence that says what its direction means, where its test knows no margin.

    Args:
        found: The evidence.
        asked: The question.
        margin: Its margin.
    """
    if found.favours_pass is not None:
        return found
    answer = read_answer(asked, margin, favours_candidate=found.favours_candidate)
    return replace(found, favours_pass=answer)


def read_answer(asked: Question, margin: float, *, favours_candidate: bool) -> bool | None:
    """Return what a shown difference from 0 means for a question: PASS, FAIL or nothing.

    Args:
        asked: The question.
        margin: Its margin.
        favours_candidate: The direction of the difference.

    >>> read_answer("not-worse", 0.02, favours_candidate=True)
    True
    >>> read_answer("better", 0.02, favours_candidate=True) is None
    True
    """
    if asked == "equivalent" or (asked == "better" and margin and favours_candidate):
        return None
    return favours_candidate
