"""How often a comparison finds a difference between two arms whose labels were swapped at random.

In a comparison of a service with itself no difference is there by construction. Swapping the two
outcomes within each pair, with a coin for each, makes further such comparisons of the same pairs:
whatever makes pairs alike or unlike stays, and only who is called the candidate changes. The share
of them in which a difference is found may not exceed the level.

For one criterion the share is exact: all ways to swap are followed together, pair by pair. Several
criteria share the coins of their pairs, and their p-values are adjusted together, so a random
sample of the ways is followed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nextafter
from random import Random
from typing import TypeAlias

from trialwise.documents.numbers import as_percent, as_probability
from trialwise.model.verdict import Decision
from trialwise.procedures.comparing.findings import (
    ArmRun,
    ComparisonVerdict,
    Contrast,
    RelabelledShare,
)
from trialwise.procedures.comparing.pair_following import TestRules
from trialwise.procedures.comparing.pairing import pair_trials
from trialwise.stats.multiplicity import Correction, adjust
from trialwise.stats.paired import PairCounts
from trialwise.stats.paired_rules import PairedRule, plan_paired_rule
from trialwise.stats.rate_intervals import clopper_pearson

#: Ways to swap that are followed where there are too many for all.
RELABELLINGS = 2_000

_ALIKE = (
    "No difference was found, and none could be: in every pair both passed or both failed. The "
    "service probably replies the same to the same seed; for this check it has to run without one."
)

Outcomes: TypeAlias = Sequence[tuple[bool, bool] | None]
"""Whether the first and the second arm passed, pair by pair; None for a pair that is left out."""


def relabel_arms(
    verdict: ComparisonVerdict, arms: Sequence[ArmRun], rules: TestRules, *, seed: int = 0
) -> ComparisonVerdict:
    """Conclude the comparison of a service with itself.

    It passes where no difference was found, and where swapping labels at random keeps the level. It
    is INCONCLUSIVE where no pair was discordant, since then nothing could be found.

    Args:
        verdict: What its two arms came to, asked whether they are different.
        arms: The two runs.
        rules: The rules that they were made by; those of a fixed size where there are none.
        seed: Of the coins.
    """
    outcomes: dict[str, Outcomes] = {}
    used: dict[str, PairedRule] = {}
    testing = [one for one in verdict.findings if one.p_value is not None]
    control, candidate = arms
    asked = verdict.question
    places: dict[str, int] = {}
    for one in testing:
        pairing = pair_trials(control.record, candidate.record, (one.experiment, one.experiment))
        analysis = control.record.plan.analysis
        told = [pair.read(one.criterion, analysis) for pair in pairing.pairs]
        # The pairs of another sampling have coins of their own.
        start = places.setdefault(one.experiment, sum(map(len, outcomes.values())))
        outcomes[one.criterion] = [*[None] * start, *told]
        rule = rules.get((control.label, candidate.label, one.criterion))
        used[one.criterion] = _fit_rule(rule, told, asked.alpha / len(testing))
    if not outcomes:
        return verdict
    share = relabel_pairs(outcomes, used, level=asked.alpha, correction=asked.correction, seed=seed)
    found = [one.criterion for one in testing if one.contrast is not Contrast.NOT_TOLD_APART]
    if not _disagree(outcomes):
        decision, statement = Decision.INCONCLUSIVE, _ALIKE
    else:
        is_kept = not found and not share.exceeds_level
        decision = Decision.PASS if is_kept else Decision.FAIL
        statement = _state_share(share, found)
    return replace(verdict, decision=decision, statement=statement, relabelled=share)


def _disagree(outcomes: Mapping[str, Outcomes]) -> bool:
    """Return whether any pair of any criterion is discordant."""
    return any(
        one is not None and one[0] != one[1] for several in outcomes.values() for one in several
    )


def _fit_rule(rule: PairedRule | None, outcomes: Outcomes, alpha: float) -> PairedRule:
    """Return a rule whose last pair is the last one that counts."""
    counting = sum(one is not None for one in outcomes)
    if rule is None:
        return plan_paired_rule(pairs=max(1, counting), alpha=alpha)
    limit = rule.max_pairs
    if limit is not None and len(outcomes) >= limit > counting > 0:
        return replace(rule, max_pairs=counting)
    return rule


def _state_share(share: RelabelledShare, found: Sequence[str]) -> str:
    """State whether a difference was found, and how often one would be."""
    level = as_percent(share.level)
    head = (
        f"A difference was found in {', '.join(found)} although there is none: that happens in at "
        f"most {level} of such comparisons."
        if found
        else "No difference was found, and by construction there is none."
    )
    often = as_probability(share.share)
    if share.interval is not None:
        ends = (as_probability(share.interval.low), as_probability(share.interval.high))
        often = f"{often} of {share.relabellings:,} ways (95 % interval {ends[0]} to {ends[1]})"
    else:
        often = f"{often} of all ways"
    tail = "which is more than the limit of" if share.exceeds_level else "and the limit is"
    return (
        f"{head} With labels swapped at random within its pairs, one is found in {often}, "
        f"{tail} {level}."
    )


def relabel_pairs(
    outcomes: Mapping[str, Outcomes],
    rules: Mapping[str, PairedRule],
    *,
    level: float,
    correction: Correction = "holm",
    relabellings: int = RELABELLINGS,
    seed: int = 0,
) -> RelabelledShare:
    """Return how often a difference is found where labels are swapped at random within pairs.

    Args:
        outcomes: By criterion; the same place is the same pair in each.
        rules: By criterion: how its pairs are decided.
        level: Of all tests together.
        correction: How the tests share it.
        relabellings: How many ways to swap are followed where there are several criteria.
        seed: Of the coins.

    >>> from trialwise.stats.paired_rules import plan_paired_rule
    >>> pairs = [(True, False), (False, True)] * 4
    >>> rule = plan_paired_rule(pairs=len(pairs))
    >>> share = relabel_pairs({"right": pairs}, {"right": rule}, level=0.05)
    >>> share.share, share.is_exact  # 2 of 256 ways: one arm wins all 8
    (0.0078125, True)
    """
    followed = {name: _Followed(rules[name]) for name in outcomes}
    if len(outcomes) == 1:
        ((name, only),) = outcomes.items()
        return RelabelledShare(
            share=followed[name].find_share(only),
            found=None,
            relabellings=None,
            interval=None,
            level=level,
        )
    coins = Random(seed)
    length = max(map(len, outcomes.values()), default=0)
    found = 0
    for _ in range(relabellings):
        bits = coins.getrandbits(max(1, length))
        p_values = [
            followed[name].find_p_value(several, bits) for name, several in outcomes.items()
        ]
        found += adjust(p_values, method=correction, alpha=level).number_rejected > 0
    return RelabelledShare(
        share=found / relabellings,
        found=found,
        relabellings=relabellings,
        interval=clopper_pearson(found, relabellings, confidence=0.95),
        level=level,
    )


class _Followed:
    """A rule that remembers what it said, since many ways to swap come to the same counts."""

    def __init__(self, rule: PairedRule) -> None:
        self._rule = rule
        self._is_shown: dict[tuple[int, int, int], bool | None] = {}
        self._p_values: dict[tuple[int, int, int], float] = {}

    def find_share(self, outcomes: Outcomes) -> float:
        """Return the probability that a difference is shown, over all ways to swap."""
        states, shown, alike = {(0, 0): 1.0}, 0.0, 0
        for pair in outcomes:
            if pair is None:
                continue
            if pair[0] == pair[1]:
                alike += 1
                after = states
            else:
                after = {}
                for (first, second), weight in states.items():
                    for state in ((first + 1, second), (first, second + 1)):
                        after[state] = after.get(state, 0.0) + weight / 2
            states = {}
            for state, weight in after.items():
                said = self._ask(*state, alike)
                if said is None:
                    states[state] = weight
                shown += weight if said else 0.0
            if not states:
                break
        return shown

    def find_p_value(self, outcomes: Outcomes, bits: int) -> float:
        """Return the p-value of one way to swap; 1 where the pairs end before the rule does."""
        first = second = alike = 0
        for place, pair in enumerate(outcomes):
            if pair is None:
                continue
            if pair[0] == pair[1]:
                alike += 1
            elif pair[0] ^ (bits >> place & 1):
                first += 1
            else:
                second += 1
            if self._ask(first, second, alike) is not None:
                return self._find_p_value(first, second, alike)
        return 1.0

    def _ask(self, first: int, second: int, alike: int) -> bool | None:
        """Return whether a difference is shown; None to go on."""
        key = first, second, alike
        if key not in self._is_shown:
            outcome = self._rule.decide(_count(*key))
            self._is_shown[key] = None if outcome is None else outcome != "not shown"
        return self._is_shown[key]

    def _find_p_value(self, first: int, second: int, alike: int) -> float:
        key = first, second, alike
        if key not in self._p_values:
            found = min(1.0, 2 * min(self._rule.find_p_values(_count(*key))))
            # A design may miss its level by rounding, on either side.
            alpha = self._rule.alpha
            shown = self._is_shown[key]
            self._p_values[key] = min(found, alpha) if shown else max(found, nextafter(alpha, 1.0))
        return self._p_values[key]


def _count(first: int, second: int, alike: int) -> PairCounts:
    # Pairs that are alike count the same, whether both passed or neither did.
    return PairCounts(both=alike, only_a=first, only_b=second, neither=0)
