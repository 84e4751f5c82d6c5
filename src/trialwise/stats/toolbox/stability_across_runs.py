"""The stability of an agent over several traces, as the envelopes of another tool hold them.

The gate of a suite scores each trial by `trace_stability` and summarises the trials with intervals.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, pvariance

from trialwise.errors import InvalidArgument
from trialwise.stats.trace_stability import (
    DEFAULT_GATE,
    StabilityGate,
    StabilityReport,
    read_trace,
    stability_of_shape,
)
from trialwise.validation import require_choice


@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityAcrossRuns:
    """How the weakest sub-score of each run behaved over at least two runs."""

    score: float
    """The mean."""
    weakest_score: float
    """The minimum: one bad run drives it down."""
    variance: float
    """The population variance, at most 0.25."""
    runs: int
    run_scores: tuple[float, ...]
    """Each run's weakest sub-score, in order."""
    excluding: tuple[str, ...]

    def resolve_target(self, path: str) -> float:
        """The number a dot-path names, for a matcher to gate; an unknown path is an error."""
        targets = {
            "stability.score": self.score,
            "stability.weakest_score": self.weakest_score,
            "stability.variance": self.variance,
        }
        return targets[require_choice("path", path, tuple(targets))]

    def meets(self, gate: StabilityGate = DEFAULT_GATE) -> bool:
        """Whether the gate's target is at least its minimum."""
        return self.resolve_target(gate.target) >= gate.minimum


def agent_stability(
    envelope: Mapping[str, object], *, tokens_per_call: float = 2000
) -> StabilityReport:
    """The four sub-scores of one trace envelope; it reads anything and never raises on it.

    The scores are those of `stability_of_shape`.

    Parameters
    ----------
    envelope : mapping
        `{tool_calls: [{name, server, args}], conversation: {tokens: {total}, turns: [{role,
        content}]}}`, any part of which may be missing.
    tokens_per_call : float
        As in `stability_of_shape`.

    Examples
    --------
    >>> call = {"name": "search", "server": "docs", "args": {"q": "a"}}
    >>> report = agent_stability({"tool_calls": [call] * 4,
    ...                           "conversation": {"tokens": {"total": 3000}}})
    >>> report.redundancy, round(report.cost_per_progress, 3)
    (0.25, 0.667)
    """
    return stability_of_shape(read_trace(envelope), tokens_per_call=tokens_per_call)


def agent_stability_across(
    runs: Sequence[Mapping[str, object] | StabilityReport],
    *,
    tokens_per_call: float = 2000,
    excluding: Collection[str] = (),
) -> StabilityAcrossRuns:
    """The mean, minimum and population variance of the runs' weakest sub-scores.

    Parameters
    ----------
    runs : sequence of envelopes or reports
        At least two: one run has neither a variance nor a worst of many.
    tokens_per_call : float
        As in `agent_stability`, for the envelopes.
    excluding : collection of str
        Sub-scores left out of every run's weakest one.

    Examples
    --------
    >>> steady = {"tool_calls": [], "conversation": {}}
    >>> agent_stability_across([steady, steady]).resolve_target("stability.score")
    1.0
    """
    allowed = "be a sequence of at least two envelopes or reports"
    try:
        given = tuple(runs)
    except TypeError:
        raise InvalidArgument("runs", runs, allowed) from None
    if len(given) < 2 or not all(isinstance(run, Mapping | StabilityReport) for run in given):
        raise InvalidArgument("runs", runs, allowed)
    reports = [
        run
        if isinstance(run, StabilityReport)
        else agent_stability(run, tokens_per_call=tokens_per_call)
        for run in given
    ]
    scores = tuple(report.weakest_score_without(excluding) for report in reports)
    return StabilityAcrossRuns(
        score=float(mean(scores)),
        weakest_score=min(scores),
        # In rationals, so that equal runs have a variance of exactly 0.
        variance=float(pvariance(scores)),
        runs=len(scores),
        run_scores=scores,
        excluding=tuple(excluding),
    )
