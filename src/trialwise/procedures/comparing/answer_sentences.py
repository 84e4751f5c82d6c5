"""The sentences that answer a comparison: for one criterion under two arms, and for all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from trialwise.documents.numbers import as_points
from trialwise.model.verdict import Decision
from trialwise.procedures.comparing.comparison_findings import (
    ComparisonFinding,
    ComparisonQuestion,
    Contrast,
    Evidence,
    Question,
)
from trialwise.stats.normal import upper_z

#: The power with which further pairs would settle a difference.
_POWER = 0.80
#: The differences that a sentence may speak of; the largest that is still open is named.
_SETTLED = (0.05, 0.02, 0.01)
#: Whole candidates that one sentence names; the others are in the table.
_MOST_NAMED = 3


def answer_question(
    findings: Sequence[ComparisonFinding], asked: ComparisonQuestion, labels: Sequence[str]
) -> str:
    """Return one sentence, or one for each candidate, that answers the question.

    Args:
        findings: All of the comparison.
        asked: The question.
        labels: Of the arms, the control first.
    """
    couples = list(dict.fromkeys((one.against, one.arm) for one in findings))
    parts = []
    for against, arm in couples[:_MOST_NAMED]:
        mine = [one for one in findings if (one.against, one.arm) == (against, arm)]
        shown = arm if len(labels) == 2 or asked.against == "control" else f"{arm} to {against}"
        if len(mine) == 1:
            parts.append(answer_criterion(mine[0], asked, shown))
        else:
            parts.append(_list_criteria(mine, shown))
    left = len(couples) - _MOST_NAMED
    if left > 0:
        parts.append(f"The table has {left} more.")
    return " ".join(parts)


def answer_criterion(
    finding: ComparisonFinding, asked: ComparisonQuestion, arm: str | None = None
) -> str:
    """Return the answer for one criterion under two arms, with the size of the difference.

    Args:
        finding: What was concluded.
        asked: The question, whose confidence the interval has.
        arm: What to call the candidate; its label unless given.
    """
    name = arm or finding.arm
    if finding.obstacle:
        return f"{name} cannot be compared with {finding.against}: {finding.obstacle}."
    head = _state_head(finding, name)
    if finding.difference is None or finding.interval is None:
        return f"{head}."
    gap = finding.difference
    low, high = finding.interval
    level = f"({100 * (finding.interval.confidence or asked.confidence):.3g} %)"
    if head == f"{name} is better" and low > 0:
        return f"{head}: {_in_points(gap)} points, at least {_in_points(low)} {level}."
    if head == f"{name} is worse" and high < 0:
        return f"{head}: {_in_points(-gap)} points, at least {_in_points(-high)} {level}."
    sentence = (
        f"{head}: {_sign_points(gap)} points, between {_sign_points(low)} and "
        f"{_sign_points(high)} {level}"
    )
    more = describe_more_pairs(finding, asked.alpha)
    is_open = finding.decision is Decision.INCONCLUSIVE and more
    return f"{sentence}; {more}." if is_open else f"{sentence}."


def _state_head(finding: ComparisonFinding, arm: str) -> str:
    """Return who is better, or what was asked and not shown."""
    margin = as_points(finding.margin)
    if finding.decision is not Decision.INCONCLUSIVE:
        passed = finding.decision is Decision.PASS
        match finding.question:
            case "better" if finding.margin:
                return f"{arm} is {'' if passed else 'not '}better by more than {margin}"
            case "not-worse" if passed and finding.contrast is not Contrast.BETTER:
                return f"{arm} is not worse by {margin}"
            case "equivalent":
                within = "within" if passed else "more than"
                return f"{arm} is {within} {margin} {'of' if passed else 'from'} {finding.against}"
    if finding.contrast is not Contrast.NOT_TOLD_APART:
        return f"{arm} is {finding.contrast}"
    return f"{arm} is {_NOT_SHOWN[finding.question].format(margin=margin)}".strip()


_NOT_SHOWN: dict[Question, str] = {
    "different": "not shown to differ",
    "better": "not shown to be better",
    "not-worse": "not shown to lose less than {margin}",
    "equivalent": "not shown to be within {margin}",
}


def _list_criteria(findings: Sequence[ComparisonFinding], arm: str) -> str:
    """Return what several criteria show: what decides first, and each with its difference."""
    groups: dict[str, list[str]] = {}
    for one in sorted(findings, key=_rank):
        head = "not compared" if one.obstacle else _state_head(one, "").strip()
        head = head.removeprefix("is ")
        shown = one.decision is not Decision.INCONCLUSIVE and one.difference is not None
        gap = f" ({_sign_points(one.difference)} points)" if shown and one.difference else ""
        groups.setdefault(head, []).append(f"{one.criterion}{gap}")
    parts = []
    for head, names in groups.items():
        left = len(names) - _MOST_NAMED
        more = f" and {left} more" if left > 0 else ""
        parts.append(f"{head} in {', '.join(names[:_MOST_NAMED])}{more}")
    reasons = dict.fromkeys(one.obstacle for one in findings)
    if all(reasons):
        why = "; ".join(reasons)
        return f"{arm} cannot be compared with {findings[0].against}: {why}."
    return f"{arm} is {'; '.join(parts)}."


def _rank(finding: ComparisonFinding) -> int:
    """Return the place of a finding in a sentence: what fails comes first, what is open last."""
    return (Decision.FAIL, Decision.PASS, Decision.INCONCLUSIVE).index(finding.decision)


def describe_more_pairs(found: Evidence, alpha: float) -> str:
    """Return how many more pairs would settle a difference, by the discordance so far.

    >>> from trialwise.stats.paired import PairCounts
    >>> pairs = PairCounts(both=80, only_a=4, only_b=6, neither=10)
    >>> describe_more_pairs(Evidence(control=None, candidate=None, pairs=pairs), 0.05)
    'about 240 more pairs would settle a difference of 5 points'
    """
    pairs = found.pairs
    if pairs is None or found.inputs_won is not None or not pairs.pairs:
        return ""
    # One more of each kind than was seen, so that 0 of 20 does not count as never.
    discordance = (pairs.discordant + 1) / (pairs.pairs + 2)
    for gap in _SETTLED:
        more = _count_pairs(gap, max(discordance, gap), alpha) - pairs.pairs
        if more > 0:
            return (
                f"about {_round(more):,} more pairs would settle a difference of {as_points(gap)}"
            )
    return ""


def _count_pairs(gap: float, discordance: float, alpha: float) -> int:
    """Return about how many pairs find a difference (Connor 1987)."""
    spread = upper_z(alpha / 2) * math.sqrt(discordance)
    spread += upper_z(1 - _POWER) * math.sqrt(max(0.0, discordance - gap * gap))
    return math.ceil((spread / gap) ** 2)


def _round(count: int) -> int:
    """Round to two digits: the number is a forecast."""
    step = int(10 ** max(0, len(str(count)) - 2))
    return math.ceil(count / step) * step


def list_still_possible(found: Evidence, fewest: int) -> Iterator[str]:
    """Yield what a finding that shows nothing leaves open."""
    discordant = found.discordant
    if discordant is not None and discordant < fewest:
        yield (
            f"Not even winning all {discordant} of them could have told the two apart: that takes "
            f"at least {fewest}."
            if discordant
            else f"It takes at least {fewest} pairs that differ to tell the two apart."
        )
    if found.interval is not None:
        low, high = found.interval
        yield (
            f"A difference from {_sign_points(low)} to {_sign_points(high)} points is not ruled "
            "out."
        )


def _in_points(value: float) -> str:
    return f"{100 * value:.1f}"


def _sign_points(value: float) -> str:
    text = f"{100 * value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")
