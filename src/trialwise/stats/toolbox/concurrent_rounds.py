"""What trials that are started together cost a sequential test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, SupportsIndex

from trialwise.errors import InvalidArgument
from trialwise.stats.result_types import Decision
from trialwise.stats.sequential.concurrency import LIKELY_NEEDED, chances_undecided, trials_to_start
from trialwise.stats.sequential.walks import Boundaries, decision_at
from trialwise.validation import require_count, require_positive, require_rate

#: States rarer than this cannot move a mean that is read to a hundredth of a trial.
_NEGLIGIBLE = 1e-14


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a stream stands: its verdict, if nothing still missing could change it."""

    verdict: Decision | None
    trials: int
    """In-order trials the verdict rests on, or the length of the gapless beginning."""
    failures: int
    """Failures among them; with gaps before a verdict, those of the filling that gave it."""
    missing: int
    """Results not yet in, among the trials issued."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundCharacteristic:
    """What a design costs when trials run side by side in rounds."""

    rate: float
    concurrency: int
    mean_rounds: float
    mean_started: float
    """Trials started, wasted ones included."""
    mean_needed: float
    """Trials the verdict rests on: what the design would use one at a time."""

    @property
    def mean_wasted(self) -> float:
        """Trials started that the verdict did not need."""
        return self.mean_started - self.mean_needed


def standing(design: Boundaries, outcomes: Sequence[bool | None]) -> Standing:
    """The verdict on results in the order of inputs, with None for those still missing.

    Parameters
    ----------
    design : SequentialDesign
        Anything with `cap`, `accept` and `reject`.
    outcomes : sequence of bool or None
        Trial by trial as issued: passed, failed, or not known yet.

    Examples
    --------
    >>> from trialwise.stats.sequential import SequentialDesign
    >>> design = SequentialDesign.optimal(0.9, 0.8, cap=50)
    >>> standing(design, [True] * 12 + [None]).verdict is None
    True
    >>> standing(design, [False, False, None, False, False]).verdict
    <Decision.FAIL: 'FAIL'>
    """
    if len(outcomes) > design.cap:
        raise InvalidArgument("outcomes", len(outcomes), f"hold at most {design.cap} trials")
    missing = sum(outcome is None for outcome in outcomes)
    worst = _in_order(design, [bool(outcome) for outcome in outcomes])
    if worst[0] is Decision.PASS or not missing:
        return _standing(worst, missing)
    best = _in_order(design, [outcome is not False for outcome in outcomes])
    if best[0] is Decision.FAIL or (best[0] is worst[0] is Decision.INCONCLUSIVE):
        return _standing(best, missing)
    known = next((i for i, outcome in enumerate(outcomes) if outcome is None), len(outcomes))
    return Standing(
        verdict=None,
        trials=known,
        failures=sum(outcome is False for outcome in outcomes[:known]),
        missing=missing,
    )


def chance_needed(
    design: Boundaries,
    trials: SupportsIndex,
    failures: SupportsIndex,
    ahead: SupportsIndex,
    *,
    prior: tuple[float, float] = (1.0, 1.0),
) -> float:
    """P(the design has not decided within the next `ahead` trials), so that one more is needed.

    The rate is unknown, so each next outcome is drawn from the beta posterior of the results so
    far: the exact predictive probability, by a recursion over the failures.

    Parameters
    ----------
    design : SequentialDesign
        Its boundaries are used.
    trials, failures : int
        The undecided beginning of the stream.
    ahead : int
        Trials already issued beyond it.
    prior : tuple of float
        The beta prior on the success rate, both above 0; uniform by default.

    Examples
    --------
    >>> from trialwise.stats.sequential import SequentialDesign
    >>> design = SequentialDesign.wald(0.9, 0.8, cap=50)
    >>> chance_needed(design, 0, 0, 0)
    1.0
    """
    n, f = require_count("trials", trials), require_count("failures", failures)
    j = require_count("ahead", ahead)
    if f > n:
        raise InvalidArgument("failures", failures, f"be at most trials ({n})")
    a, b = (require_positive("prior", value) for value in prior)
    return chances_undecided(design, n, f, j, (a, b))[-1]


def round_characteristic(
    design: Boundaries, rate: float, *, concurrency: SupportsIndex, likely: float = LIKELY_NEEDED
) -> RoundCharacteristic:
    """Exact mean rounds and trials when each round starts what `trials_to_start` says and waits.

    Examples
    --------
    >>> from trialwise.stats.sequential import SequentialDesign
    >>> one = round_characteristic(SequentialDesign.wald(0.9, 0.8, cap=50), 0.9, concurrency=1)
    >>> one.mean_rounds == one.mean_started == one.mean_needed
    True
    """
    p = require_rate("rate", rate)
    c = require_count("concurrency", concurrency, minimum=1)
    start = partial(trials_to_start, design, in_flight=0, concurrency=c, likely=likely)
    rounds = list(walk_rounds(design, p, start))
    return RoundCharacteristic(
        rate=p,
        concurrency=c,
        mean_rounds=sum(one.chance for one in rounds),
        mean_started=sum(one.chance * one.size for one in rounds),
        mean_needed=sum(one.needed for one in rounds),
    )


class _Round(NamedTuple):
    """A round that a run may take, from one state of its trials and failures."""

    number: int
    size: int
    started: int
    """Trials started in all, those of this round included."""
    chance: float
    """P(a run takes this round)."""
    ends: float
    """P(a run ends with this round)."""
    needed: float
    """The mean number of trials that this round adds to those that decide."""


def walk_rounds(
    design: Boundaries, rate: float, start: Callable[[int, int], int]
) -> Iterator[_Round]:
    """Yield every round that a run may take, where each waits for the one before.

    Parameters
    ----------
    design : SequentialDesign
        Its boundaries are used.
    rate : float
        The true rate of a success.
    start : callable
        How many trials to start after n trials with f failures.
    """
    states, number = {(0, 0): 1.0}, 0
    while states:
        number += 1
        following: dict[tuple[int, int], float] = {}
        for (n, f), weight in states.items():
            size = start(n, f)
            open_states, used = _advance(design, n, f, size, rate)
            ends = weight * max(0.0, 1 - sum(open_states.values()))
            yield _Round(number, size, n + size, weight, ends, weight * used)
            for state, chance in open_states.items():
                if weight * chance > _NEGLIGIBLE:
                    following[state] = following.get(state, 0.0) + weight * chance
        states = following


def _standing(result: tuple[Decision | None, int, int], missing: int) -> Standing:
    return Standing(verdict=result[0], trials=result[1], failures=result[2], missing=missing)


def _in_order(design: Boundaries, passed: Sequence[bool]) -> tuple[Decision | None, int, int]:
    failures = 0
    for n, success in enumerate(passed, start=1):
        failures += not success
        verdict = decision_at(design, n, failures)
        if verdict is not None:
            return verdict, n, failures
    return None, len(passed), failures


def _advance(
    design: Boundaries, n: int, f: int, size: int, p: float
) -> tuple[dict[tuple[int, int], float], float]:
    """One round at rate p: the states left undecided, and the mean trials that were needed."""
    states = {f: 1.0}
    used = 0.0
    for m in range(n + 1, n + size + 1):
        used += sum(states.values())
        following: dict[int, float] = {}
        for k, weight in states.items():
            for j, chance in ((k, p), (k + 1, 1 - p)):
                if decision_at(design, m, j) is None:
                    following[j] = following.get(j, 0.0) + weight * chance
        states = following
    return {(n + size, k): weight for k, weight in states.items()}, used
