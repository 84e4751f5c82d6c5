"""Which of several arms is best, or what are they like? From the first round to the explanation.

The arms take turns on the same inputs. `ChoiceFollowing` follows their rounds and says which arms
the next one asks. `CHOICE` decides from the records of the runs alone, and explains the answer.
`describe_arms` decides nothing: it only describes. The bets that choose are in
`stats.arm_selection`, and what a choice will probably take in `sizing.comparison_sizing`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean
from types import MappingProxyType
from typing import ClassVar, Literal, TypeAlias

from trialwise.decimals import complement
from trialwise.documents.numbers import as_count, as_level, as_observed, as_points, join_few
from trialwise.errors import InvalidArgument
from trialwise.model.evidence import Tally
from trialwise.model.plan import Plan
from trialwise.model.trial import Trial
from trialwise.procedures.comparing.findings import AnswerKind, ArmRun, ArmsRow
from trialwise.procedures.comparing.pairing import pair_trials, read_pass
from trialwise.stats.arm_selection import TIE_ERROR, ArmSelection, measure_sign_evidence
from trialwise.stats.binomial import binomial_cdf
from trialwise.stats.confidence_sequences import anytime_interval
from trialwise.stats.result_types import Interval
from trialwise.validation import require_open_rate

Outcome: TypeAlias = Literal["chosen", "tied", "undecided"]
Place: TypeAlias = Literal["chosen", "may be best", "not best", "tied", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceQuestion:
    """Which arm is best, by how much that matters, and how surely it is to be known.

    >>> ChoiceQuestion(smallest_difference=0.05).alpha
    0.05
    """

    kind: ClassVar[AnswerKind] = "choice"
    smallest_difference: float = 0.1
    """The smallest difference between two rates that matters."""
    confidence: float = 0.95
    criterion: str | None = None
    """What decides; None for all criteria together, of which a trial has to pass each."""
    break_ties: bool = False
    """Whether to choose the last arm also where another may be as good."""
    edition: int = 2
    """Of the rule for ties: see `ArmSelection`."""

    def __post_init__(self) -> None:
        require_open_rate("smallest_difference", self.smallest_difference)
        require_open_rate("confidence", self.confidence)

    @property
    def alpha(self) -> float:
        """The largest probability of a wrong answer where one arm is best by that much."""
        return complement(self.confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplorationQuestion:
    """What arms are described by; nothing is decided."""

    kind: ClassVar[AnswerKind] = "exploration"
    criterion: str | None = None
    confidence: float = 0.95

    def __post_init__(self) -> None:
        require_open_rate("confidence", self.confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmStanding:
    """One arm: how often it passed, what it took, and what is shown of it."""

    label: str
    contract: str
    run_id: str
    tally: Tally
    interval: Interval | None
    """Of its rate alone; None without a trial that was measured."""
    place: Place = ""
    """What a choice shows of it; empty where nothing is chosen."""
    is_unbeaten: bool = True
    """Whether no other arm is shown to be better."""
    not_measured: int = 0
    latency_s: float | None = None
    """The mean over its trials."""
    usd_per_trial: float | None = None
    usd_per_success: float | None = None
    factors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceVerdict:
    """Which arm is best, with the arms that nobody beats."""

    question: ChoiceQuestion
    criteria: tuple[str, ...]
    """What a trial had to pass."""
    outcome: Outcome
    chosen: str | None
    """The label of the arm that is best; None where none is named."""
    remaining: tuple[str, ...]
    """The arms that may be better than all others by the smallest difference."""
    unbeaten: tuple[str, ...]
    """The arms that no other arm is shown to be better than."""
    arms: tuple[ArmStanding, ...]
    """In the order in which they were given."""
    rounds: int
    trials: int
    """The trials that were counted, of all arms together."""
    statement: str
    """The sentence that answers."""
    guarantee: str
    """How often the answer is wrong, and under which condition."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """Arms beside each other: a description, which decides nothing."""

    criteria: tuple[str, ...]
    confidence: float
    arms: tuple[ArmStanding, ...]
    """The highest rate first."""
    unbeaten: tuple[str, ...]
    trials: int
    multiplicity: str
    """States how far the highest rate lies above its true rate, on average and by chance alone."""
    notes: tuple[str, ...] = ()


class ArmChoice:
    """Which arm is best, decided by rounds in which the arms take turns."""

    question = "Which arm is best?"

    def decide(self, arms: Sequence[ArmRun], question: ChoiceQuestion) -> ChoiceVerdict:
        """Decide which arm is best, from runs that took turns on the same inputs.

        Args:
            arms: The arms in the order in which they took part.
            question: What was asked.
        """
        following = ChoiceFollowing([arm.record.plan for arm in arms], question)
        for place, arm in enumerate(arms):
            for trial in arm.record.trials.of_experiment(following.experiment).sketches():
                following.add(place, trial)
        selection = following.selection
        labels = [arm.label for arm in arms]
        unbeaten = tuple(labels[one] for one in selection.unbeaten)
        outcome: Outcome = selection.outcome or "undecided"
        # An arm that is tied is neither shown to be best nor shown to be worse.
        places: dict[int, Place] = dict.fromkeys(range(len(arms)), "not best")
        places |= dict.fromkeys(selection.tied, "tied")
        left: Place = "chosen" if outcome == "chosen" else "may be best"
        places |= dict.fromkeys(selection.remaining, left)
        scope = following.criteria, following.experiment
        standings = _describe_arms(arms, scope, unbeaten, question.confidence, places)
        chosen = None if selection.chosen is None else labels[selection.chosen]
        return ChoiceVerdict(
            question=question,
            criteria=following.criteria,
            outcome=outcome,
            chosen=chosen,
            remaining=tuple(labels[one] for one in selection.remaining),
            unbeaten=unbeaten,
            arms=standings,
            rounds=following.rounds,
            trials=selection.trials,
            statement=_answer(outcome, chosen, standings, question),
            guarantee=_guarantee(question),
            notes=tuple(_list_notes(arms, standings)),
        )

    def explain(self, verdict: ChoiceVerdict) -> tuple[str, ...]:
        """Say how often the answer is wrong, and what qualifies it.

        Args:
            verdict: What was concluded.
        """
        return (verdict.guarantee, *verdict.notes)


CHOICE = ArmChoice()


# --- Rounds in order ------------------------------------------------------------------------------
# Rounds are counted in the order of inputs, without gaps: a trial that comes back early waits for
# those before it. So neither the number of workers nor a restart changes what is chosen, and the
# same code chooses while the arms run and from the records of their runs.


class ChoiceFollowing:
    """The choice while its arms run: a `RoundSchedule` of the engine.

    Args:
        plans: The plans of the arms' runs, of one seed.
        question: What is asked.
        labels: The labels of the arms, for a display.
    """

    unit, is_fixed = "round", False

    def __init__(
        self, plans: Sequence[Plan], question: ChoiceQuestion, labels: Sequence[str] = ()
    ) -> None:
        self.labels = labels
        self.criteria, self.experiment = find_criteria(plans, question.criterion)
        """What a trial has to pass, and the experiment they belong to."""
        self.question = question
        """What is asked."""
        self.selection = ArmSelection(
            len(plans),
            smallest_difference=question.smallest_difference,
            alpha=question.alpha,
            break_ties=question.break_ties,
            edition=question.edition,
        )
        self._analyses = [plan.analysis for plan in plans]
        self._waiting: list[dict[int, bool | None]] = [{} for _ in plans]
        self.rounds = 0
        """How many rounds were counted."""

    def add(self, arm: int, trial: Trial) -> None:
        """Take a completed trial of an arm."""
        # A round that was counted is settled: a trial that comes back again changes nothing.
        if trial.experiment != self.experiment or trial.index < self.rounds:
            return
        self._waiting[arm][trial.index] = read_pass(trial, self.criteria, self._analyses[arm])
        selection, waiting = self.selection, self._waiting
        # Who is asked in a round depends on the rounds before it only, in their order.
        while selection.outcome is None and all(
            self.rounds in waiting[one] for one in selection.next_arms
        ):
            selection.add_round({one: waiting[one][self.rounds] for one in selection.next_arms})
            for one in waiting:
                one.pop(self.rounds, None)
            self.rounds += 1

    def takes_part(self, arm: int, experiment: str, index: int) -> bool:
        """Return whether an arm is asked in a round, as far as the rounds before it tell."""
        return experiment == self.experiment and arm in self.selection.next_arms

    def count_open(self) -> int:
        """Count the arms that the next round asks."""
        return len(self.selection.next_arms)

    def list_rows(self) -> list[ArmsRow]:
        """List how every arm stands."""
        selection = self.selection
        good = {None: selection.next_arms, "tied": selection.tied}
        left = good.get(selection.outcome, selection.remaining)
        word = {None: None, "chosen": "best", "tied": "tied"}[selection.outcome]
        return [
            ArmsRow(
                self.labels[arm],
                f"{counts.passed:,} of {counts.trials:,} passed",
                word if arm in left else "another arm is better",
                after=counts.trials,
            )
            for arm, counts in enumerate(selection.counts)
        ]

    def is_decided(self, experiment: str) -> bool:
        """Return whether no further round is needed."""
        return experiment != self.experiment or self.selection.outcome is not None


def find_criteria(plans: Sequence[Plan], criterion: str | None) -> tuple[tuple[str, ...], str]:
    """Find what a trial has to pass, and the experiment in which that is asked.

    Args:
        plans: The plans of all arms.
        criterion: The one that decides; None for all criteria that every arm has together.

    Raises:
        InvalidArgument: The arms do not have it, or the criteria have several samplings.
    """
    known = {one.criterion: one.experiment for one in plans[0].criteria}
    for plan in plans[1:]:
        shared = [one.criterion for one in plan.criteria if one.criterion in known]
        known = {name: known[name] for name in shared}
    if criterion is not None:
        if criterion not in known:
            raise InvalidArgument("criterion", criterion, f"be one of {', '.join(known)}")
        return (criterion,), known[criterion]
    # What is only reported says nothing of which arm is best, unless there is nothing else.
    decided = {one.criterion for one in plans[0].criteria if one.standing.reported_at is None}
    counted = {name: place for name, place in known.items() if name in decided} or known
    if not counted:
        raise InvalidArgument("criterion", None, "exist: the arms share no criterion")
    # A round is one input for all arms: criteria of other inputs have other rounds.
    experiment, *others = set(counted.values())
    if others:
        allowed = "be named: the criteria are asked of different inputs"
        raise InvalidArgument("criterion", None, allowed)
    return tuple(counted), experiment


# --- A description -------------------------------------------------------------------------------


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
    standings = _describe_arms(arms, (criteria, experiment), unbeaten, confidence)
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


def _describe_arms(
    arms: Sequence[ArmRun],
    scope: tuple[Sequence[str], str],
    unbeaten: Sequence[str],
    confidence: float,
    places: Mapping[int, Place] = MappingProxyType({}),
) -> tuple[ArmStanding, ...]:
    criteria, experiment = scope
    found = []
    for number, arm in enumerate(arms):
        record = arm.record
        trials = list(record.trials.of_experiment(experiment).sketches())
        results = [read_pass(one, criteria, record.plan.analysis) for one in trials]
        measured = [one for one in results if one is not None]
        passed, count = sum(measured), len(measured)
        # Of failures, too: these describe what an arm takes, and decide nothing.
        latencies = [one.latency_s for one in trials if one.latency_s is not None]
        usd = record.verdict.spending.usd
        # The interval holds whatever ended the run: an arm that was dropped early had few trials
        # because of what they showed, and a fixed-sample interval would be too narrow.
        interval = anytime_interval(passed, count, confidence=confidence) if count else None
        found.append(
            ArmStanding(
                label=arm.label,
                contract=record.plan.contract,
                run_id=record.run_id,
                tally=Tally(trials=count, passed=passed),
                interval=interval,
                place=places.get(number, ""),
                is_unbeaten=arm.label in unbeaten,
                not_measured=len(results) - count,
                latency_s=fmean(latencies) if latencies else None,
                usd_per_trial=usd / len(trials) if usd is not None and trials else None,
                usd_per_success=usd / passed if usd is not None and passed else None,
                factors=dict(record.plan.factors),
            )
        )
    return tuple(found)


def _find_unbeaten(
    arms: Sequence[ArmRun], criteria: Sequence[str], experiment: str, alpha: float
) -> tuple[str, ...]:
    """Find the arms that no other is shown to be better than, by the pairs of every two."""
    evidence: dict[str, list[float]] = {arm.label: [] for arm in arms}
    for first, second in combinations(arms, 2):
        # Stored runs may be analysed differently, and each is read by its own analysis.
        told = [
            tuple(
                read_pass(trial, criteria, arm.record.plan.analysis)
                for trial, arm in zip(pair, (first, second), strict=True)
            )
            for pair in pair_trials(first, second, experiment).pairs
        ]
        wins, losses = told.count((True, False)), told.count((False, True))
        evidence[first.label].append(measure_sign_evidence(losses, wins))
        evidence[second.label].append(measure_sign_evidence(wins, losses))
    # A mean of e-values is an e-value however they depend on each other (Vovk and Wang 2021), so
    # that no share of the level is lost to the number of arms.
    return tuple(label for label, several in evidence.items() if fmean(several) < 1 / alpha)


# --- Sentences ------------------------------------------------------------------------------------


def _answer(
    outcome: Outcome, chosen: str | None, arms: Sequence[ArmStanding], question: ChoiceQuestion
) -> str:
    difference, confidence = as_points(question.smallest_difference), as_level(question.confidence)
    if outcome == "undecided":
        left = [one.label for one in arms if one.place == "may be best"]
        return f"Not decided: {join_few(left)} {'remains' if len(left) == 1 else 'remain'}."
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
    # The fewest trials of any arm: the excess is largest there.
    excess = expect_best_excess(len(arms), fewest, rate)
    return (
        f"If all arms were equally good ({as_observed(rate)}), the best of {len(arms)} would "
        f"still look {as_points(round(excess, 3))} better than it is, on average: the highest of "
        "several rates is high by luck, too. Nothing is decided here; "
        "`trialwise compare --question best` decides."
    )


def _list_notes(arms: Sequence[ArmRun], standings: Sequence[ArmStanding]) -> Iterator[str]:
    for one in standings:
        if one.not_measured:
            yield f"{one.label}: {as_count(one.not_measured, 'trial')} not measured and left out"
    ends = dict.fromkeys(arm.record.verdict.aborted for arm in arms)
    yield from filter(None, ends)
