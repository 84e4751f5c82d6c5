"""What several arms come to: the choice between them, or their description, from their records."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from statistics import fmean

from trialwise.decimals import complement
from trialwise.documents.numbers import as_count, as_level, as_observed, as_points
from trialwise.documents.phrases import join_few
from trialwise.errors import InvalidArgument
from trialwise.model.tally import Tally
from trialwise.procedures.comparing.choice_findings import (
    ArmStanding,
    ChoiceQuestion,
    ChoiceVerdict,
    Exploration,
    Outcome,
    Place,
)
from trialwise.procedures.comparing.choice_following import (
    ChoiceFollowing,
    find_criteria,
    read_pass,
)
from trialwise.procedures.comparing.comparison_findings import ArmRun
from trialwise.procedures.comparing.trial_pairing import pair_trials
from trialwise.stats.arm_selection import TIE_ERROR, measure_sign_evidence
from trialwise.stats.binomial import binomial_cdf
from trialwise.stats.confidence_sequences import anytime_interval


def conclude_choice(arms: Sequence[ArmRun], question: ChoiceQuestion) -> ChoiceVerdict:
    """Conclude which arm is best, from runs that took turns on the same inputs.

    Args:
        arms: The arms in the order in which they took part.
        question: What was asked.
    """
    following = ChoiceFollowing([arm.record.plan for arm in arms], question)
    for place, arm in enumerate(arms):
        for trial in arm.record.trials.of_experiment(following.experiment).sketches():
            following.add(place, trial)
    selection = following.selection
    outcome: Outcome = selection.outcome or "undecided"
    labels = [arm.label for arm in arms]
    remaining = tuple(labels[one] for one in selection.remaining)
    unbeaten = tuple(labels[one] for one in selection.unbeaten)
    chosen = None if selection.chosen is None else labels[selection.chosen]

    def find_place(arm: int) -> Place:
        if arm in selection.remaining:
            return "chosen" if outcome == "chosen" else "may be best"
        return "tied" if arm in selection.tied else "not best"

    standings = tuple(
        _describe_arm(
            arm,
            following.criteria,
            following.experiment,
            confidence=question.confidence,
            place=find_place(place),
            is_unbeaten=arm.label in unbeaten,
        )
        for place, arm in enumerate(arms)
    )
    return ChoiceVerdict(
        question=question,
        criteria=following.criteria,
        outcome=outcome,
        chosen=chosen,
        remaining=remaining,
        unbeaten=unbeaten,
        arms=standings,
        rounds=following.rounds,
        trials=selection.trials,
        statement=_answer(outcome, chosen, standings, question),
        guarantee=_guarantee(question),
        notes=tuple(_list_notes(arms, standings)),
    )


def describe_arms(
    arms: Sequence[ArmRun], *, criterion: str | None = None, confidence: float = 0.95
) -> Exploration:
    """Describe arms beside each other; nothing is decided.

    Args:
        arms: Runs on the same inputs.
        criterion: What a trial has to pass; None for all criteria that the arms share, together.
        confidence: Of every interval, and of the arms that are possibly best.
    """
    if len({arm.label for arm in arms}) < len(arms):
        raise InvalidArgument("arms", [arm.label for arm in arms], "have different labels")
    criteria, experiment = find_criteria([arm.record.plan for arm in arms], criterion)
    unbeaten = _find_unbeaten(arms, criteria, experiment, complement(confidence))
    standings = [
        _describe_arm(
            arm, criteria, experiment, confidence=confidence, is_unbeaten=arm.label in unbeaten
        )
        for arm in arms
    ]
    ranked = tuple(sorted(standings, key=lambda one: -(one.tally.rate or 0.0)))
    return Exploration(
        criteria=criteria,
        confidence=confidence,
        arms=ranked,
        unbeaten=tuple(one.label for one in ranked if one.is_unbeaten),
        trials=sum(one.tally.trials for one in ranked),
        multiplicity=_describe_multiplicity(ranked),
        notes=tuple(_list_notes(arms, standings)),
    )


def expect_best_excess(arms: int, trials: int, rate: float) -> float:
    """Compute how many points too high the best of several equal arms looks on average.

    Args:
        arms: How many there are; they pass and fail independently.
        trials: Of each.
        rate: Of each.

    >>> round(expect_best_excess(5, 20, 0.8), 3)
    0.098
    """
    # The mean of a maximum is the sum of the probabilities that it exceeds 0, 1, 2 and so on.
    below = (binomial_cdf(k, trials, rate) for k in range(trials))
    return math.fsum(1 - one**arms for one in below) / trials - rate


# --- One arm --------------------------------------------------------------------------------------


def _describe_arm(
    arm: ArmRun,
    criteria: Sequence[str],
    experiment: str,
    *,
    confidence: float,
    place: Place = "",
    is_unbeaten: bool = True,
) -> ArmStanding:
    record = arm.record
    trials = list(record.trials.of_experiment(experiment).sketches())
    results = [read_pass(one, criteria, record.plan.analysis) for one in trials]
    measured = [one for one in results if one is not None]
    tally = Tally(trials=len(measured), passed=sum(measured))
    latencies = [one.latency_s for one in trials if one.latency_s is not None]
    usd = record.verdict.spending.usd
    return ArmStanding(
        label=arm.label,
        contract=record.plan.contract,
        run_id=record.run_id,
        tally=tally,
        # It holds whatever ended the run.
        interval=anytime_interval(tally.passed, tally.trials, confidence=confidence)
        if tally.trials
        else None,
        place=place,
        is_unbeaten=is_unbeaten,
        not_measured=len(results) - len(measured),
        latency_s=fmean(latencies) if latencies else None,
        usd_per_trial=usd / len(trials) if usd is not None and trials else None,
        usd_per_success=usd / tally.passed if usd is not None and tally.passed else None,
        factors=dict(record.plan.factors),
    )


def _find_unbeaten(
    arms: Sequence[ArmRun], criteria: Sequence[str], experiment: str, alpha: float
) -> tuple[str, ...]:
    """Find the arms that no other is shown to be better than, by the pairs of every two."""
    evidence: dict[str, list[float]] = {arm.label: [] for arm in arms}
    for first, second in combinations(arms, 2):
        pairing = pair_trials(first.record, second.record, (experiment, experiment))
        wins = losses = 0
        for pair in pairing.pairs:
            ours, theirs = (
                read_pass(trial, criteria, arm.record.plan.analysis)
                for trial, arm in ((pair.control, first), (pair.candidate, second))
            )
            if ours is not None and theirs is not None:
                wins += ours > theirs
                losses += theirs > ours
        evidence[first.label].append(measure_sign_evidence(losses, wins))
        evidence[second.label].append(measure_sign_evidence(wins, losses))
    return tuple(label for label, several in evidence.items() if fmean(several) < 1 / alpha)


# --- Sentences ------------------------------------------------------------------------------------


def _answer(
    outcome: Outcome,
    chosen: str | None,
    arms: Sequence[ArmStanding],
    question: ChoiceQuestion,
) -> str:
    difference, confidence = as_points(question.smallest_difference), as_level(question.confidence)
    if outcome == "undecided":
        left = [one.label for one in arms if one.place == "may be best"]
        verb = "remains" if len(left) == 1 else "remain"
        return f"Not decided: {join_few(left)} {verb}."
    if outcome == "tied":
        tied = [one.label for one in arms if one.place == "tied"]
        zone = f"{difference} or more ({confidence})"
        return f"Tied: {join_few(tied)}. No arm is better than all others by {zone}."
    as_good = [one.label for one in arms if one.is_unbeaten and one.label != chosen]
    names = " and ".join(as_good) if len(as_good) == 2 else join_few(as_good)
    others = f" {names} may be as good." if as_good else ""
    return f"{chosen} is the best arm or within {difference} of it ({confidence}).{others}"


def _guarantee(question: ChoiceQuestion) -> str:
    text = (
        f"If one arm is better than every other by {as_points(question.smallest_difference)} or "
        f"more, any other answer comes in at most {as_level(question.alpha)} of runs, at any rates "
        "and however the arms fail together"
    )
    if question.break_ties:
        return f"{text}. Where arms are closer, any of the best may be named."
    # Both of the last two could be named by the first edition, each with the whole error.
    error = as_level(TIE_ERROR if question.edition > 1 else 2 * TIE_ERROR)
    return f"{text}. If all arms are equally good, one of them is named in at most {error}."


def _describe_multiplicity(arms: Sequence[ArmStanding]) -> str:
    trials = sum(one.tally.trials for one in arms)
    fewest = min(one.tally.trials for one in arms)
    if not fewest:
        return "An arm has no trial that was measured."
    rate = sum(one.tally.passed for one in arms) / trials
    excess = expect_best_excess(len(arms), fewest, rate)
    return (
        f"If all arms were equally good ({as_observed(rate)}), the best of {len(arms)} would "
        f"still look {as_points(round(excess, 3))} better than it is, on average: the highest of "
        "several rates is high by luck, too. Nothing is decided here; `trialwise choose` decides."
    )


def _list_notes(arms: Sequence[ArmRun], standings: Sequence[ArmStanding]) -> Iterator[str]:
    for one in standings:
        if one.not_measured:
            yield f"{one.label}: {as_count(one.not_measured, 'trial')} not measured and left out"
    ends = dict.fromkeys(arm.record.verdict.aborted for arm in arms)
    yield from filter(None, ends)
