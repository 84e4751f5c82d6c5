"""Gates: what a contract asks of numbers that only repeated runs have, such as pass^k or stability.

A criterion is decided by a rule with error rates. A gate holds a number against a limit and has
none, so it is a noun of its own: it can FAIL a run, but no envelope counts it. All gates share
one grammar: a target by its dot-path, and a matcher.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.model.matcher import Exact, Matcher, NumberSchema, may_hold
from trialwise.stats.run_reliability import check_half_width
from trialwise.stats.trace_stability import DEFAULT_GATE, SUB_SCORES, StabilityFloors
from trialwise.validation import (
    require_choice,
    require_count,
    require_open_rate,
    require_positive,
    require_rate,
)

# --- Targets ----------------------------------------------------------------------------------


class Basis(StrEnum):
    """The kind of number that a target limits. None of them has an error rate."""

    COUNT = "count"
    """A count of this run. It estimates nothing."""
    UNBIASED = "unbiased estimate"
    PLUG_IN = "plug-in estimate, biased"
    HEURISTIC = "heuristic"
    """A convention. A low number tells where to look and proves nothing."""


_TARGETS: dict[str, dict[str, Basis]] = {
    "reliability": {
        "runs": Basis.COUNT,
        "pass_at_k": Basis.UNBIASED,
        "passhat_k": Basis.UNBIASED,
        "variance_amplification": Basis.HEURISTIC,
        "graceful_degradation": Basis.HEURISTIC,
    },
    "stability": {
        "score": Basis.HEURISTIC,
        "weakest_score": Basis.HEURISTIC,
        "variance": Basis.HEURISTIC,
        **dict.fromkeys(SUB_SCORES, Basis.HEURISTIC),
        "drifted": Basis.COUNT,
    },
    "metrics": {
        "pass_rate": Basis.UNBIASED,
        "pass_at.K": Basis.UNBIASED,
        "pass_at_naive.K": Basis.PLUG_IN,
        "pass_hat.K": Basis.UNBIASED,
        "pass_hat_plugin.K": Basis.PLUG_IN,
        "score": Basis.UNBIASED,
        "flakiness": Basis.PLUG_IN,
        "flaky": Basis.COUNT,
        "unscored": Basis.COUNT,
    },
}
#: The greatest number that a target can be, where that is not 1; the least is 0 throughout.
_MOST = {
    "reliability.runs": math.inf,
    "reliability.pass_at_k": 100.0,
    "reliability.passhat_k": 100.0,
    "reliability.variance_amplification": 100.0,
    "reliability.graceful_degradation": 100.0,
    "stability.variance": 0.25,
    "stability.drifted": math.inf,
    "metrics.flakiness": 50.0,
    "metrics.flaky": math.inf,
    "metrics.unscored": math.inf,
}
#: Targets of which less is better.
_LOWER_IS_BETTER = frozenset(
    {
        *("reliability.variance_amplification", "stability.variance", "stability.drifted"),
        *("metrics.flakiness", "metrics.flaky", "metrics.unscored"),
    }
)
#: Targets that stand in no list of numbers, only where a limit names them: the table of the runs
#: shows them.
_ON_REQUEST = frozenset({f"stability.{name}" for name in (*SUB_SCORES, "drifted")})
#: A number of trials at the end of a path, such as 3 in `metrics.pass_hat.3`.
_K = re.compile(r"(?<=\.)[1-9][0-9]{0,8}$")


#: What each target is, as every page says it.
_MEANINGS = {
    "reliability.runs": "smallest number of runs of an input",
    "reliability.pass_at_k": "share of inputs with at least one passing run",
    "reliability.passhat_k": "share of inputs with passing runs only",
    "reliability.variance_amplification": "how mixed the runs of an input are: 0 % if all agree, "
    "100 % for half and half",
    "reliability.graceful_degradation": "share of passing runs, where later runs count more",
    "stability.score": "mean of the runs' weakest scores",
    "stability.weakest_score": "weakest score of the worst run",
    "stability.variance": "variance of the weakest scores between runs of one input",
    **{f"stability.{name}": f"lowest {name.replace('_', ' ')} of all runs" for name in SUB_SCORES},
    "stability.drifted": "runs with a sub-score below its floor",
    "metrics.pass_rate": "mean pass rate of the inputs",
    "metrics.pass_at.K": "chance that at least one of K runs passes",
    "metrics.pass_at_naive.K": "the same, from the observed rate of each input",
    "metrics.pass_hat.K": "chance that all of K runs pass",
    "metrics.pass_hat_plugin.K": "the same, from the observed rate of each input",
    "metrics.score": "mean score of the inputs",
    "metrics.flakiness": "mean share of the rarer outcome",
    "metrics.flaky": "inputs that both passed and failed",
    "metrics.unscored": "inputs without graders or without a run",
}


def describe_target(target: str) -> str:
    """Say what a target is.

    >>> describe_target("metrics.pass_hat.3")
    'chance that all of 3 runs pass'
    """
    k = _K.search(target)
    return _MEANINGS[_K.sub("K", target)].replace("K", k.group() if k else "K")


def targets_of(gate: str) -> tuple[str, ...]:
    """Return every target of a gate; K stands for a number of trials.

    >>> targets_of("stability")[:3]
    ('stability.score', 'stability.weakest_score', 'stability.variance')
    """
    return tuple(f"{gate}.{name}" for name in _TARGETS[gate])


def listed_targets_of(gate: str) -> tuple[str, ...]:
    """Return the targets whose numbers every report lists, also without a limit."""
    return tuple(target for target in targets_of(gate) if target not in _ON_REQUEST)


def is_lower_better(target: str) -> bool:
    """Return whether a lower number of a target is better.

    >>> is_lower_better("stability.variance"), is_lower_better("stability.score")
    (True, False)
    """
    return target in _LOWER_IS_BETTER


def basis_of(target: str) -> Basis | None:
    """Return what kind of number a target is; None for what is no target.

    >>> str(basis_of("metrics.pass_hat.3")), basis_of("metrics.pass_hat")
    ('unbiased estimate', None)
    """
    gate, _, name = target.partition(".")
    known = _TARGETS.get(gate, {})
    # `K` is how the list shows it, and no number.
    return None if name.endswith(".K") else known.get(_K.sub("K", name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """A target and what its number has to be.

    >>> print(Expectation(target="stability.score", matcher=NumberSchema(minimum=0.7)))
    stability.score at least 0.7
    """

    target: str
    matcher: Matcher

    def __post_init__(self) -> None:
        if basis_of(self.target) is None:
            known = ", ".join(name for gate in _TARGETS for name in targets_of(gate))
            raise InvalidArgument("target", self.target, f"be one of {known}")
        allowed = _misfit(self.target, self.matcher)
        if allowed:
            raise InvalidArgument("matcher", str(self.matcher), allowed)

    @property
    def basis(self) -> Basis:
        """What kind of number the target is."""
        basis = basis_of(self.target)
        assert basis is not None
        return basis

    @property
    def k(self) -> int | None:
        """The number of trials that the target is about, where it names one."""
        found = _K.search(self.target)
        return int(found[0]) if found else None

    def __str__(self) -> str:
        return f"{self.target} {self.matcher}"


# --- What a contract may ask ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """What the order and number of passes over repeated runs of one input come to.

    Percents are whole numbers for one input, and means over several. Without expectations the
    summary is reported and nothing is asked of it.
    """

    name: ClassVar[str] = "reliability"

    expect: tuple[Expectation, ...] = ()
    criterion: str | None = None
    """Whose outcomes count; None: a run passes if every criterion does."""
    half_width: float = 0.05
    """The half-width of the interval that the recommended number of runs would give."""
    sampling: str | None = None
    """Over which of the contract's samplings; None where there is only one."""
    confidence: float = 0.95
    """The confidence of every interval beside a number."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "expect", _expectations(self.name, self.expect))
        require_open_rate("confidence", self.confidence)
        check_half_width(self.half_width)

    @property
    def fewest_runs(self) -> int:
        """How many runs of each input it takes: one shows nothing of repetition."""
        return 2

    def check_criteria(self, names: Collection[str]) -> None:
        """Refuse a criterion that the sampling does not have."""
        _check_criterion(self.criterion, names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """How steady each run's session was, by four heuristics of its trace, and the runs together.

    Without expectations the weakest sub-score of every run has to be at least 0.5.

    >>> print(*Stability().expect)
    stability.weakest_score at least 0.5
    """

    name: ClassVar[str] = "stability"

    expect: tuple[Expectation, ...] = ()
    floors: StabilityFloors = field(default_factory=StabilityFloors)
    """Below which a dimension of a run is flagged as drifted, which `stability.drifted` counts."""
    exclude: tuple[str, ...] = ()
    """Sub-scores left out of every run's weakest one."""
    tokens_per_call: float = 2000
    """Tokens for each useful call from which the cost counts against a run."""
    sampling: str | None = None
    confidence: float = 0.95

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "expect", _expectations(self.name, self.expect) or (_DEFAULT,))
        put(self, "exclude", tuple(require_choice("exclude", x, SUB_SCORES) for x in self.exclude))
        if set(self.exclude) == set(SUB_SCORES):
            raise InvalidArgument("exclude", list(self.exclude), "leave at least one sub-score")
        require_positive("tokens_per_call", self.tokens_per_call)
        require_open_rate("confidence", self.confidence)

    @property
    def fewest_runs(self) -> int:
        """How many runs of each input it takes: one has no variance and no worst of many."""
        return 2

    def check_criteria(self, names: Collection[str]) -> None:
        """It looks at traces, and at no criterion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """pass@k and pass^k, weighted scores and flakiness: per input, and as means over inputs."""

    name: ClassVar[str] = "metrics"

    expect: tuple[Expectation, ...] = ()
    k: tuple[int, ...] = ()
    """For the table of pass@k and pass^k; by default powers of two up to the runs of an input."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """The weight of each criterion in a run's score; those without one then do not count. All
    count alike where none is given."""
    threshold: float | None = None
    """The score at which a run passes; None: a run passes if every criterion does."""
    criterion: str | None = None
    """The only criterion whose outcomes count."""
    sampling: str | None = None
    confidence: float = 0.95
    samplings: tuple[str, ...] = ()
    """Several samplings that make up one skill, each with criteria of its own."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "expect", _expectations(self.name, self.expect))
        put(self, "samplings", tuple(self.samplings))
        if self.samplings and self.sampling not in (None, self.samplings[0]):
            raise InvalidArgument(
                "sampling", self.sampling, "be left out where samplings are named"
            )
        put(self, "k", tuple(sorted({require_count("k", one, minimum=1) for one in self.k})))
        put(self, "weights", MappingProxyType(dict(self.weights)))
        for name, weight in self.weights.items():
            require_positive(f"weights[{name!r}]", weight)
        if self.threshold is not None:
            require_rate("threshold", self.threshold)
        if self.criterion is not None and (self.weights or self.threshold is not None):
            allowed = "be left out where weights or a threshold combine the criteria"
            raise InvalidArgument("criterion", self.criterion, allowed)
        require_open_rate("confidence", self.confidence)

    @property
    def fewest_runs(self) -> int:
        """How many runs of each input it takes: as many as the largest k."""
        return max((*self.k, *(one.k for one in self.expect if one.k is not None)), default=1)

    def check_criteria(self, names: Collection[str]) -> None:
        """Refuse criteria that the samplings do not have."""
        _check_criterion(self.criterion, names)
        if not self.weights.keys() <= set(names):
            allowed = f"name criteria: {', '.join(names)}"
            raise InvalidArgument("weights", dict(self.weights), allowed)


Gate: TypeAlias = Reliability | Stability | Metrics
"""One block of a contract."""


def _misfit(target: str, matcher: Matcher) -> str:
    """Return what a matcher would have to be for this target; nothing where it is."""
    most = _MOST.get(target, 1.0)
    lowest = _lower_limit(matcher)
    if not may_hold(matcher, least=0, most=most):
        span = "a number of at least 0" if math.isinf(most) else f"a number from 0 to {most:g}"
        share = f": write {lowest / 100:g} for {lowest:g} %" if lowest and most == 1 else ""
        return f"hold for some {target}, which is {span}{share}"
    if 1 < most < math.inf and lowest is not None and 0 < lowest < 1:
        # As a share it would hold for next to everything.
        return f"be in percent, as {target} is: write {100 * lowest:g} for {lowest:g}"
    return ""


def _lower_limit(matcher: Matcher) -> float | None:
    if isinstance(matcher, Exact):
        return matcher.value
    if not isinstance(matcher, NumberSchema):
        return None
    return matcher.minimum if matcher.minimum is not None else matcher.exclusive_minimum


def _expectations(gate: str, given: Sequence[Expectation]) -> tuple[Expectation, ...]:
    expect = tuple(given)
    for one in expect:
        if not one.target.startswith(f"{gate}."):
            allowed = f"be one of {', '.join(targets_of(gate))}"
            raise InvalidArgument("target", one.target, allowed)
    return expect


def _check_criterion(criterion: str | None, names: Collection[str]) -> None:
    if criterion is not None and criterion not in names:
        raise InvalidArgument("criterion", criterion, f"be one of {', '.join(names)}")


_DEFAULT = Expectation(
    target=DEFAULT_GATE.target, matcher=NumberSchema(minimum=DEFAULT_GATE.minimum)
)
