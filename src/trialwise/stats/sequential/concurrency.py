"""Decides while several trials are running, without counting the fast ones first.

Results count in the **order of inputs**. If sixteen trials run at once and failures take three
times as long as passes, counting results as they arrive turns a 20 % chance of passing a bad
service into 62 %. A missing result is a gap, and a verdict is given as soon as no
filling of the gaps could change it.

More failures never turn a FAIL into a PASS, so two fillings settle every other: all gaps passed,
and all gaps failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, SupportsIndex

from trialwise.stats.result_types import Decision
from trialwise.validation import require_count, require_open_rate, require_positive

#: Start a trial only if it will more likely than not be needed: one wasted trial a run at eight
#: in flight, where starting all eight wastes three.
LIKELY_NEEDED = 0.5


class Boundaries(Protocol):
    """What a design says about when to stop: failures that PASS or FAIL after n trials."""

    @property
    def cap(self) -> int:
        """The most trials."""

    @property
    def accept(self) -> Sequence[int]:
        """The most failures that pass after each number of trials."""

    @property
    def reject(self) -> Sequence[int]:
        """The fewest failures that fail after each number of trials."""

    @property
    def futile(self) -> Sequence[tuple[int, int]]:
        """The failures at which the design gives up after each number of trials, or nothing."""


def trials_to_start(
    design: Boundaries,
    trials: SupportsIndex,
    failures: SupportsIndex,
    in_flight: SupportsIndex,
    *,
    concurrency: SupportsIndex,
    likely: float = LIKELY_NEEDED,
    prior: tuple[float, float] = (1.0, 1.0),
) -> int:
    """How many trials to start now: as many as will each probably be needed.

    At least one when nothing is in flight and the design is undecided, never more than the
    concurrency or the cap allows.

    Examples
    --------
    >>> from trialwise.stats.sequential import SequentialDesign
    >>> design = SequentialDesign.wald(0.9, 0.8, cap=50)
    >>> trials_to_start(design, 0, 0, 0, concurrency=8)
    8
    >>> trials_to_start(design, 12, 0, 0, concurrency=8)   # two more passes decide
    2
    """
    n, f = require_count("trials", trials), require_count("failures", failures)
    flying = require_count("in_flight", in_flight)
    room = require_count("concurrency", concurrency, minimum=1) - flying
    room = min(room, design.cap - n - flying)
    least = require_open_rate("likely", likely)
    a, b = (require_positive("prior", value) for value in prior)
    if room <= 0 or decision_at(design, n, f) is not None:
        return 0
    chances = chances_undecided(design, n, f, flying + room - 1, (a, b))[flying:]
    wanted = sum(chance >= least for chance in chances)
    return max(wanted, 0 if flying else 1)


def decision_at(design: Boundaries, n: int, f: int) -> Decision | None:
    """Return the decision after n trials and f failures, or None where sampling goes on."""
    if f <= design.accept[n]:
        return Decision.PASS
    if f >= design.reject[n]:
        return Decision.FAIL
    gives_up = bool(design.futile) and design.futile[n][0] <= f <= design.futile[n][1]
    return Decision.INCONCLUSIVE if n == design.cap or gives_up else None


def chances_undecided(
    design: Boundaries, n: int, f: int, ahead: int, prior: tuple[float, float]
) -> list[float]:
    """P(undecided after 0, 1, …, `ahead` more trials) from an undecided state."""
    a, b = prior
    states = {f: 1.0}
    chances = [1.0]
    for m in range(n, min(n + ahead, design.cap)):
        following: dict[int, float] = {}
        for k, weight in states.items():
            fails = (b + k) / (a + b + m)
            for j, chance in ((k, 1 - fails), (k + 1, fails)):
                if decision_at(design, m + 1, j) is None:
                    following[j] = following.get(j, 0.0) + weight * chance
        states = following
        chances.append(sum(states.values()))
    return chances + [0.0] * (ahead + 1 - len(chances))
