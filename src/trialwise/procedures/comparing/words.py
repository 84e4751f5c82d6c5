"""The words of a comparison: what each criterion came to, what qualifies it, and the answer.

Nothing here reads a sentence: each is made from the fields of a finding, and words that depend on
a kind of answer stand in a table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from trialwise.documents.numbers import as_count, as_points, as_signed_points
from trialwise.model.claim import PopulationClaim, SamplingMode
from trialwise.model.evidence import StopReason
from trialwise.model.trial import Analysis
from trialwise.model.verdict import Decision
from trialwise.procedures.comparing.evidence import TESTS
from trialwise.procedures.comparing.findings import (
    ArmRun,
    ComparisonFinding,
    ComparisonQuestion,
    Contrast,
    Evidence,
    PairingSummary,
    Question,
    ValidityCheck,
    group_by_arms,
)
from trialwise.procedures.comparing.pairing import LEVEL, Pairing
from trialwise.stats.multiplicity import adjust
from trialwise.stats.paired import approximate_pairs

#: The power with which further pairs would settle a difference.
_POWER = 0.80
#: The differences that a sentence may speak of; the largest that is still open is named.
_SETTLED = (0.05, 0.02, 0.01)
#: Whole candidates that one sentence names; the others are in the table.
_MOST_NAMED = 3

#: Differences stand with one decimal everywhere, so that sentence, table and plot agree.
_write_points = partial(as_signed_points, digits=1)

#: What a table calls a decided answer to each question, and what a sentence says where that is
#: about a margin.
_SHOWN: Mapping[tuple[Question, Decision], tuple[str, str]] = {
    ("different", Decision.PASS): ("better", ""),
    ("different", Decision.FAIL): ("worse", ""),
    ("better", Decision.PASS): ("better", "better by more than {margin}"),
    ("better", Decision.FAIL): ("not better", "not better by more than {margin}"),
    ("not-worse", Decision.PASS): ("not worse", "not worse by {margin}"),
    ("not-worse", Decision.FAIL): ("worse", ""),
    ("equivalent", Decision.PASS): ("equivalent", "within {margin} of {against}"),
    ("equivalent", Decision.FAIL): ("not equivalent", "more than {margin} from {against}"),
}

#: What it says where nothing was shown.
_NOT_SHOWN: Mapping[Question, str] = {
    "different": "not shown to differ",
    "better": "not shown to be better",
    "not-worse": "not shown to lose less than {margin}",
    "equivalent": "not shown to be within {margin}",
}


def name_outcome(finding: ComparisonFinding) -> str:
    """Name what was shown of a candidate, in the words of the question that was asked.

    Where more was shown than a candidate that is not worse, that is named.
    """
    if finding.question == "not-worse" and finding.contrast is Contrast.BETTER:
        return finding.contrast.value
    if finding.question == "different" and finding.decision is Decision.INCONCLUSIVE:
        return finding.contrast.value
    return _SHOWN.get((finding.question, finding.decision), ("not shown",))[0]


# --- The answer -----------------------------------------------------------------------------------


def answer_question(
    findings: Sequence[ComparisonFinding], asked: ComparisonQuestion, labels: Sequence[str]
) -> str:
    """Return one sentence, or one for each candidate, that answers the question.

    Args:
        findings: All of the comparison.
        asked: The question.
        labels: Of the arms, the control first.
    """
    couples, parts = group_by_arms(findings), []
    for (against, arm), mine in list(couples.items())[:_MOST_NAMED]:
        shown = arm if len(labels) == 2 or asked.against == "control" else f"{arm} to {against}"
        reasons = list(dict.fromkeys(one.obstacle for one in mine))
        if all(reasons):
            parts.append(f"{shown} cannot be compared with {against}: {'; '.join(reasons)}.")
        elif len(mine) == 1:
            parts.append(_answer_criterion(mine[0], asked, shown))
        else:
            parts.append(f"{shown} is {_list_criteria(mine)}.")
    left = len(couples) - _MOST_NAMED
    return " ".join([*parts, *([f"The table has {left} more."] if left > 0 else [])])


def _answer_criterion(finding: ComparisonFinding, asked: ComparisonQuestion, arm: str) -> str:
    """Return the answer for one criterion under two arms, with the size of the difference."""
    head = f"{arm} is {_describe_standing(finding)}"
    gap, interval = finding.difference, finding.interval
    if gap is None or interval is None:
        return f"{head}."
    low, high = interval
    level = f"({100 * (interval.confidence or asked.confidence):.3g} %)"
    if not _answer_margin(finding):
        # "Better" and "worse" say the sign already: the size is that of the nearer end.
        nearest = {Contrast.BETTER: low, Contrast.WORSE: -high}.get(finding.contrast, 0.0)
        if nearest > 0:
            return f"{head}: {100 * abs(gap):.1f} points, at least {100 * nearest:.1f} {level}."
    points, *ends = map(_write_points, (gap, low, high))
    sentence = f"{head}: {points} points, between {ends[0]} and {ends[1]} {level}"
    more = describe_more_pairs(finding, asked.alpha)
    is_open = finding.decision is Decision.INCONCLUSIVE and more
    return f"{sentence}; {more}." if is_open else f"{sentence}."


def _answer_margin(finding: ComparisonFinding) -> str:
    """Return what was shown of the margin; nothing where it is about a difference from 0."""
    if finding.question == "not-worse" and finding.contrast is Contrast.BETTER:
        return ""
    _, shown = _SHOWN.get((finding.question, finding.decision), ("", ""))
    return shown if finding.margin > 0 else ""


def _describe_standing(finding: ComparisonFinding) -> str:
    """Return what a candidate is, or what was asked and not shown."""
    text = _answer_margin(finding)
    if not text and finding.contrast is not Contrast.NOT_TOLD_APART:
        text = finding.contrast.value
    text = text or _NOT_SHOWN[finding.question]
    return text.format(margin=as_points(finding.margin), against=finding.against)


def _list_criteria(findings: Sequence[ComparisonFinding]) -> str:
    """Return what several criteria show: what decides first, and each with its difference."""
    order = (Decision.FAIL, Decision.PASS, Decision.INCONCLUSIVE)
    groups: dict[str, list[str]] = {}
    for one in sorted(findings, key=lambda one: order.index(one.decision)):
        standing = "not compared" if one.obstacle else _describe_standing(one)
        is_sized = one.decision is not Decision.INCONCLUSIVE and one.difference
        gap = f" ({_write_points(one.difference)} points)" if is_sized and one.difference else ""
        groups.setdefault(standing, []).append(f"{one.criterion}{gap}")
    parts = []
    for standing, names in groups.items():
        left = len(names) - _MOST_NAMED
        more = f" and {left} more" if left > 0 else ""
        parts.append(f"{standing} in {', '.join(names[:_MOST_NAMED])}{more}")
    return "; ".join(parts)


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
    # The largest difference that is still open is named: smaller ones take ever more pairs.
    for gap in _SETTLED:
        needed = approximate_pairs(gap, max(discordance, gap), level=alpha / 2, power=_POWER)
        if (more := needed - pairs.pairs) > 0:
            # Two digits: the number is a forecast.
            step = int(10 ** max(0, len(str(more)) - 2))
            about = math.ceil(more / step) * step
            return f"about {about:,} more pairs would settle a difference of {as_points(gap)}"
    return ""


# --- One criterion --------------------------------------------------------------------------------


def state_finding(finding: ComparisonFinding, fewest: int) -> str:
    """Say what a criterion came to, by its counts.

    Args:
        finding: The criterion under two arms, concluded.
        fewest: With fewer discordant pairs nothing could be told apart.
    """
    if finding.obstacle:
        return f"Cannot be compared: {finding.obstacle}."
    if finding.contrast is not Contrast.NOT_TOLD_APART:
        return f"{finding.arm} is {finding.contrast}: {_count(finding)}."
    return " ".join([f"Not told apart: {_count(finding)}.", *_list_still_possible(finding, fewest)])


def _count(found: ComparisonFinding) -> str:
    arm, against = found.arm, found.against
    if found.inputs_won is not None:
        return (
            f"of {found.discordant} inputs that one of the two passed more often, it won "
            f"{found.inputs_won}"
        )
    ours, theirs = found.control, found.candidate
    if found.pairs is None and ours is not None and theirs is not None:
        return (
            f"{theirs.passed} of {theirs.trials} passed with {arm}, "
            f"{ours.passed} of {ours.trials} with {against}"
        )
    assert found.pairs is not None
    decided, won = found.pairs.discordant, found.pairs.only_b
    if TESTS[found.decision_rule].is_preference:
        return (
            f"of {decided} pairs in which the judge preferred a reply, it preferred {arm} "
            f"in {won} and {against} in {decided - won}"
        )
    if not decided:
        return f"both passed or both failed in each of {found.pairs.pairs} pairs"
    return (
        f"of {decided} pairs in which exactly one passed, {arm} won {won} and lost {decided - won}"
    )


def _list_still_possible(found: Evidence, fewest: int) -> Iterator[str]:
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
        low, high = map(_write_points, found.interval)
        yield f"A difference from {low} to {high} points is not ruled out."


def list_data_caveats(
    name: str, pairing: Pairing, evidence: Evidence, analysis: Analysis
) -> Iterator[str]:
    """Yield what is to know of the pairs that a criterion was tested on.

    Args:
        name: The criterion's.
        pairing: The pairs of the two arms.
        evidence: What its test says.
        analysis: Whose trials count.
    """
    summary, used = pairing.summary, evidence.pairs
    if pairing.from_files and not summary.pairs and summary.same_inputs:
        yield (
            "The trials are not paired: the files do not say which of them belong together. A "
            "field `trial` with the same values in both files does."
        )
    later = summary.pairs - summary.excused - (used.pairs if used else 0)
    if evidence.decision_rule == "paired/sequential" and used and later > 0:
        yield f"Decided after {used.pairs} pairs: the {later} pairs after them do not count."
    if evidence.decision_rule == "paired/anytime-bet":
        yield (
            "A run ended before its planned size or because of what it saw, so that a test which "
            f"no stopping biases decides, on the first {summary.pairs} pairs; its interval only "
            "describes."
        )
    elif summary.pairs and any(summary.left_out):
        yield (
            f"{summary.left_out[0]} trials of the control and {summary.left_out[1]} of the "
            "candidate have no partner and are left out."
        )
    if unjudged := sum(pair.is_unjudged(name) for pair in pairing.pairs):
        holds, is_left = ("holds", "is") if unjudged == 1 else ("hold", "are")
        yield (
            f"{as_count(unjudged, 'pair')} {holds} a reply that got no verdict from the judge and "
            f"{is_left} left out; the test keeps its level where a judge's silence has nothing to "
            "do with what it was shown."
        )
    left_out = sum(pair.is_left_out(analysis) for pair in pairing.pairs) if summary.excused else 0
    if left_out:
        yield f"{left_out} pairs hold a trial that was not measured and are left out."
    if left_out != summary.excused:
        fair = [pair.read(name, Analysis.PER_PROTOCOL) for pair in pairing.pairs]
        won, lost = fair.count((False, True)), fair.count((True, False))
        yield (
            f"{summary.excused} pairs have a trial that was not measured and counts as a "
            f"failure; without them the candidate won {won} and lost {lost}."
        )


def list_test_caveats(finding: ComparisonFinding) -> Iterator[str]:
    """Yield why an interval and a test disagree about 0, or that a margin was not tested.

    Args:
        finding: The criterion under two arms, concluded.
    """
    if finding.obstacle or finding.p_value is None:
        return
    test = TESTS[finding.decision_rule]
    if finding.margin:
        if not test.knows_margin:
            yield (
                "No exact test of a margin exists for such runs: only a difference from 0 is "
                "tested, and decides where that answers the question."
            )
        return
    told = finding.contrast is not Contrast.NOT_TOLD_APART
    if finding.interval is not None and told is (0.0 in finding.interval):
        yield _DISAGREEMENTS[told, test.is_exact]


#: Why an interval and the test disagree about 0, by whether a difference is shown and whether the
#: interval is exact. The test decides.
_DISAGREEMENTS: Mapping[tuple[bool, bool], str] = {
    (True, True): (
        "The interval is that of this test alone at its share of the level. Beside the other "
        "tests, of which some show a difference, the level left for this one is larger."
    ),
    (True, False): "The interval reaches 0, but it is approximate: the exact test decides.",
    (False, True): (
        "The interval of this test alone leaves out 0; corrected for the other tests, no "
        "difference is shown."
    ),
    (False, False): (
        "The interval of this criterion alone leaves out 0, but it is approximate and not "
        "adjusted for the other criteria: the test decides."
    ),
}

# --- The whole comparison -------------------------------------------------------------------------


def state_comparison(
    arms: Sequence[ArmRun],
    findings: Sequence[ComparisonFinding],
    checks: Sequence[ValidityCheck],
    asked: ComparisonQuestion,
) -> str:
    """Return the first line: why nothing can be decided, or the answer.

    Args:
        arms: All arms; the first is the control.
        findings: Of all criteria.
        checks: What was checked of every two arms.
        asked: The question.
    """
    for arm in arms:
        if arm.record.verdict.stop is StopReason.ERROR_RATE:
            return f"{arm.label} could not be measured: {arm.record.verdict.aborted}"
    failed = list(dict.fromkeys(one.statement for one in checks if one.withholds))
    if failed:
        text = "; ".join(failed)
        return (
            f"{text[0].upper()}{text[1:]}. Arms that are measured alike differ so much in less "
            f"than {100 * LEVEL:g} % of comparisons, so that no verdict is given."
        )
    # What only advises never stands in the first line, unless there is nothing else.
    counting = [one for one in findings if not one.advisory]
    answer = answer_question(counting or findings, asked, [one.label for one in arms])
    names = list(dict.fromkeys(one.criterion for one in findings if one.advisory))
    said = f" {', '.join(names)}: only {'advises' if len(names) == 1 else 'advise'}."
    return f"{answer}{said if names else ''}"


def state_family(p_values: Sequence[float], question: ComparisonQuestion) -> str:
    """Return the sentence that says what the tests guarantee together; none for a single test.

    Args:
        p_values: Of all tests.
        question: Its level and correction.
    """
    tests = len(p_values)
    if tests < 2:
        return ""
    found = adjust(p_values, method=question.correction, alpha=question.alpha)
    level = f"{100 * question.alpha:g} %"
    if found.controls == "per-test":
        together = min(1.0, tests * question.alpha)
        return (
            f"Each of {tests} tests is made at {level}, unadjusted: the chance of a wrong "
            f"statement somewhere is at most {100 * together:g} %."
        )
    what = (
        "the chance of any wrong statement"
        if found.controls == "FWER"
        else "the expected share of equals among those told apart"
    )
    return f"{found.label} over {tests} tests: {what} is at most {level}. {found.dependence}"


def list_caveats(
    arms: Sequence[ArmRun], pairings: Sequence[PairingSummary], checks: Sequence[ValidityCheck]
) -> Iterator[str]:
    """Yield what qualifies the whole comparison.

    Args:
        arms: All arms; the first is the control.
        pairings: How their trials were put together.
        checks: What was checked of every two arms.
    """
    control = arms[0].record
    # Time is confounded with the arms where they did not take turns. `compare` gives all arms one
    # seed and one moment of beginning, which no two separate runs share.
    began = {(one.record.plan.seed, one.record.verdict.started_at) for one in arms}
    if len(began) > 1 or control.verdict.started_at is None:
        yield (
            "The runs were made one after the other, not in turn: what changed in between, such "
            "as load or a model behind an endpoint, counts as a difference of the services."
        )
    yield from (one.statement for one in checks if one.name == "same cases" and not one.holds)
    for arm in arms:
        if arm.record.verdict.aborted:
            yield f"The run of {arm.label} ended early: {arm.record.verdict.aborted}"
    ours = control.plan.covariates
    for arm in arms[1:]:
        theirs = arm.record.plan.covariates
        names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
        both = [(one, ours.get(one, "not given"), theirs.get(one, "not given")) for one in names]
        if names:
            changed = ", ".join(f"{name} {mine} and {other}" for name, mine, other in both)
            yield f"The conditions of the runs differ: {changed}."
    modes = {one.sampling_mode for arm in arms for one in arm.record.plan.experiments}
    is_known = SamplingMode.EXTERNALLY_SUPPLIED not in modes
    if is_known and any(one.pairs and not one.same_seeds for one in pairings):
        yield "The two sides of a pair had different seeds."
    claim = control.plan.claim
    if claim.estimand.is_weighted:
        yield "The weights of the claim take no part: every pair counts alike."
    if claim.population is PopulationClaim.SUPERPOPULATION:
        yield f"The claim reaches {claim.population_name} as far as the inputs represent it."
