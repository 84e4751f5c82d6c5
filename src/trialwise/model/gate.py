"""Gates: what a contract asks of numbers that only repeated runs have, such as pass^k or stability.

A criterion is decided by a rule with error rates. A gate holds a number against a limit and has
none, so it is a noun of its own: it can FAIL a run, but no envelope counts it. All gates share
one grammar: a target by its dot-path, and a matcher.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from trialwise.declarations.scalars import Choice, Count, Number, Rate, Text
from trialwise.declarations.signatures import Made, setting
from trialwise.declarations.structures import Either, Key, Listing, MapOf
from trialwise.errors import InvalidArgument
from trialwise.model.matcher import Matcher, NumberSchema, may_hold
from trialwise.stats.run_reliability import check_half_width
from trialwise.stats.trace_stability import DEFAULT_GATE, SUB_SCORES, StabilityFloors
from trialwise.validation import (
    require_choice,
    require_count,
    require_given,
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


class Target(NamedTuple):
    """A number that a gate can hold against a limit."""

    basis: Basis
    meaning: str
    """What it is, as every page says it."""
    most: float = 1.0
    """The greatest number that it can be; the least is 0 throughout."""
    lower_is_better: bool = False
    is_listed: bool = True
    """Whether every report lists it; the others stand in the table of the runs."""

    @property
    def is_percent(self) -> bool:
        """Whether it is of a hundred and not of 1."""
        # The source document defines some figures in percent and some as shares, and gates keep
        # its units: a table must not mix them without a sign.
        return 1 < self.most < math.inf


def _count(meaning: str, *, is_listed: bool = True) -> Target:
    """Return the count of something that is better rare."""
    return Target(Basis.COUNT, meaning, math.inf, lower_is_better=True, is_listed=is_listed)


_MIXED = "how mixed the runs of an input are: 0 % if all agree, 100 % for half and half"
_SWING = "variance of the weakest scores between runs of one input"
_RARER = "mean share of the rarer outcome"
_OBSERVED = "the same, from the observed rate of each input"
_BY_GATE: dict[str, dict[str, Target]] = {
    "reliability": {
        "runs": Target(Basis.COUNT, "smallest number of runs of an input", math.inf),
        "pass_at_k": Target(Basis.UNBIASED, "share of inputs with at least one passing run", 100),
        "passhat_k": Target(Basis.UNBIASED, "share of inputs with passing runs only", 100),
        "variance_amplification": Target(Basis.HEURISTIC, _MIXED, 100, lower_is_better=True),
        "graceful_degradation": Target(
            Basis.HEURISTIC, "share of passing runs, where later runs count more", 100
        ),
    },
    "stability": {
        "score": Target(Basis.HEURISTIC, "mean of the runs' weakest scores"),
        "weakest_score": Target(Basis.HEURISTIC, "weakest score of the worst run"),
        "variance": Target(Basis.HEURISTIC, _SWING, 0.25, lower_is_better=True),
        **{
            one: Target(
                Basis.HEURISTIC, f"lowest {one.replace('_', ' ')} of all runs", is_listed=False
            )
            for one in SUB_SCORES
        },
        "drifted": _count("runs with a sub-score below its floor", is_listed=False),
    },
    "metrics": {
        "pass_rate": Target(Basis.UNBIASED, "mean pass rate of the inputs"),
        "pass_at.K": Target(Basis.UNBIASED, "chance that at least one of K runs passes"),
        "pass_at_naive.K": Target(Basis.PLUG_IN, _OBSERVED),
        "pass_hat.K": Target(Basis.UNBIASED, "chance that all of K runs pass"),
        "pass_hat_plugin.K": Target(Basis.PLUG_IN, _OBSERVED),
        "score": Target(Basis.UNBIASED, "mean score of the inputs"),
        "flakiness": Target(Basis.PLUG_IN, _RARER, 50, lower_is_better=True),
        "flaky": _count("inputs that both passed and failed"),
        "unscored": _count("inputs without graders or without a run"),
    },
}
#: The whole grammar of gates: each target by its path, where K stands for a number of trials.
TARGETS = {
    f"{gate}.{name}": target for gate, mine in _BY_GATE.items() for name, target in mine.items()
}
#: A number of trials at the end of a path, such as 3 in `metrics.pass_hat.3`.
_K = re.compile(r"(?<=\.)[1-9][0-9]{0,8}$")


def find_target(path: str) -> Target | None:
    """Find what a path names; None for what is no target.

    >>> find_target("metrics.pass_hat.3").basis, find_target("metrics.pass_hat")
    (<Basis.UNBIASED: 'unbiased estimate'>, None)
    """
    # `K` is how the list shows it, and no number.
    return None if path.endswith(".K") else TARGETS.get(_K.sub("K", path))


def describe_target(path: str) -> str:
    """Say what a target is.

    >>> describe_target("metrics.pass_hat.3")
    'chance that all of 3 runs pass'
    """
    k = _K.search(path)
    return TARGETS[_K.sub("K", path)].meaning.replace("K", k.group() if k else "K")


def targets_of(gate: str) -> tuple[str, ...]:
    """Return every target of a gate; K stands for a number of trials.

    >>> targets_of("stability")[:3]
    ('stability.score', 'stability.weakest_score', 'stability.variance')
    """
    return tuple(path for path in TARGETS if path.startswith(f"{gate}."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """A target and what its number has to be.

    >>> print(Expectation(target="stability.score", matcher=NumberSchema(minimum=0.7)))
    stability.score at least 0.7
    """

    target: str
    matcher: Matcher

    def __post_init__(self) -> None:
        found = find_target(self.target)
        if found is None:
            raise InvalidArgument("target", self.target, f"be one of {', '.join(TARGETS)}")
        allowed = _find_misfit(self.target, found, self.matcher)
        if allowed:
            raise InvalidArgument("matcher", str(self.matcher), allowed)

    @property
    def is_of(self) -> Target:
        """What the number is."""
        found = find_target(self.target)
        assert found is not None
        return found

    @property
    def k(self) -> int | None:
        """The number of trials that the target is about, where it names one."""
        found = _K.search(self.target)
        return int(found[0]) if found else None

    def __str__(self) -> str:
        return f"{self.target} {self.matcher}"


# --- What a contract may ask ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What one block of a contract asks of the numbers of repeated runs.

    Args:
        sampling: The sampling of the contract to use.
        confidence: The confidence of the interval of each number.
    """

    name: ClassVar[str]
    looks_at_criteria: ClassVar[bool] = True
    """Whether runs are graded by criteria; otherwise by the traces of their sessions."""

    expect: tuple[Expectation, ...] = ()
    sampling: str | None = setting(Text())
    confidence: float = setting(Rate(), default=0.95)

    def __post_init__(self) -> None:
        expect = tuple(self.expect)
        for one in expect:
            if not one.target.startswith(f"{self.name}."):
                allowed = f"be one of {', '.join(targets_of(self.name))}"
                raise InvalidArgument("target", one.target, allowed)
        object.__setattr__(self, "expect", expect)
        require_open_rate("confidence", self.confidence)

    @property
    def all_samplings(self) -> tuple[str | None, ...]:
        """The samplings that it names; None stands for the only one of a contract."""
        return (self.sampling,)

    @property
    def needs_runs(self) -> bool:
        """Whether it needs a fixed number of runs."""
        return True

    @property
    def fewest_runs(self) -> int:
        """How many runs of each input it takes: one shows nothing of repetition."""
        return 2

    def check_criteria(self, names: Collection[str]) -> None:
        """Refuse criteria that the samplings do not have."""
        named = getattr(self, "criterion", None)
        if named is not None and named not in names:
            raise InvalidArgument("criterion", named, f"be one of {', '.join(names)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability(Gate):
    """What the order and number of passes over repeated runs of one input come to.

    Percents are whole numbers for one input, and means over several. Without expectations the
    summary is reported and nothing is asked of it.

    Args:
        criterion: The criterion whose outcomes count.
        half_width: The half-width of the interval for the recommended number of runs.
    """

    name: ClassVar[str] = "reliability"

    criterion: str | None = setting(Text(), words="a run passes every criterion")
    half_width: float = setting(Rate(), default=0.05)

    def __post_init__(self) -> None:
        Gate.__post_init__(self)
        check_half_width(self.half_width)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability(Gate):
    """How steady each run's session was, by four heuristics of its trace, and the runs together.

    Without expectations the weakest sub-score of every run has to be at least 0.5.

    Args:
        floors: Limits below which a run is flagged. `stability.drifted` counts flagged runs.
        exclude: Sub-scores to leave out.
        tokens_per_call: The number of tokens for each useful call above which cost lowers the
            score.

    >>> print(*Stability().expect)
    stability.weakest_score at least 0.5
    """

    name: ClassVar[str] = "stability"
    looks_at_criteria: ClassVar[bool] = False

    floors: StabilityFloors = setting(
        Made(
            "floors",
            StabilityFloors,
            tuple(Key(name, Rate(), f"Of {name}.", default="0.5") for name in SUB_SCORES),
            doc="Limits below which a sub-score of a run is flagged as drifted.",
        ),
        default=StabilityFloors(),
    )
    exclude: tuple[str, ...] = setting(
        Listing(Choice(*SUB_SCORES), "a list of sub-scores"), default=()
    )
    tokens_per_call: float = setting(Count(), default=2000)

    def __post_init__(self) -> None:
        Gate.__post_init__(self)
        put = object.__setattr__
        # The default of the source document. The other gates only report without expectations,
        # since no limit of theirs is usual.
        if not self.expect:
            least = NumberSchema(minimum=DEFAULT_GATE.minimum)
            put(self, "expect", (Expectation(target=DEFAULT_GATE.target, matcher=least),))
        put(self, "exclude", tuple(require_choice("exclude", x, SUB_SCORES) for x in self.exclude))
        if set(self.exclude) == set(SUB_SCORES):
            raise InvalidArgument("exclude", list(self.exclude), "leave at least one sub-score")
        require_positive("tokens_per_call", self.tokens_per_call)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics(Gate):
    """pass@k and pass^k, weighted scores and flakiness: per input, and as means over inputs.

    Args:
        k: The values of k in the table of pass@k and pass^k.
        weights: The weight of each criterion in a run's score. Those without one do not count.
        threshold: The score from which a run passes.
        criterion: The only criterion whose outcomes count.
        samplings: Several samplings that make up one skill, each with criteria of its own.
    """

    name: ClassVar[str] = "metrics"

    k: tuple[int, ...] = setting(
        Either(
            "a whole number of at least 1, or a list of them",
            scalar=Count(),
            listing=Listing(Count(), "a list of whole numbers"),
        ),
        default=(),
        words="powers of two up to the runs of an input",
    )
    weights: Mapping[str, float] = setting(MapOf(Number(), "weights by criterion"))
    threshold: float | None = setting(Rate(), words="a run passes every criterion")
    criterion: str | None = setting(Text())
    samplings: tuple[str, ...] = setting(
        Listing(Text("the name of a sampling"), "a list of samplings"), default=()
    )

    def __post_init__(self) -> None:
        Gate.__post_init__(self)
        put = object.__setattr__
        put(self, "samplings", tuple(self.samplings))
        if self.samplings and self.sampling not in (None, self.samplings[0]):
            raise InvalidArgument(
                "sampling", self.sampling, "be left out where samplings are named"
            )
        put(self, "k", tuple(sorted({require_count("k", one, minimum=1) for one in self.k})))
        put(self, "weights", MappingProxyType(dict(self.weights or {})))
        for name, weight in self.weights.items():
            require_positive(f"weights[{name!r}]", weight)
        require_given(self, "threshold", require_rate)
        if self.criterion is not None and (self.weights or self.threshold is not None):
            allowed = "be left out where weights or a threshold combine the criteria"
            raise InvalidArgument("criterion", self.criterion, allowed)

    @property
    def all_samplings(self) -> tuple[str | None, ...]:
        """The samplings that make up one skill, or the one that it names."""
        return self.samplings or (self.sampling,)

    @property
    def needs_runs(self) -> bool:
        """Whether it needs a fixed number of runs: a mean over whatever runs there are does not."""
        return bool(self.expect or self.k)

    @property
    def fewest_runs(self) -> int:
        """How many runs of each input it takes: as many as the largest k."""
        return max((*self.k, *(one.k for one in self.expect if one.k is not None)), default=1)

    def check_criteria(self, names: Collection[str]) -> None:
        """Refuse criteria that the samplings do not have."""
        Gate.check_criteria(self, names)
        if not self.weights.keys() <= set(names):
            allowed = f"name criteria: {', '.join(names)}"
            raise InvalidArgument("weights", dict(self.weights), allowed)


#: The gates that there are, by name.
GATES: dict[str, type[Gate]] = {one.name: one for one in (Reliability, Stability, Metrics)}


def _find_misfit(target: str, found: Target, matcher: Matcher) -> str:
    """Return what a matcher would have to be for this target; nothing where it is."""
    most = found.most
    lows = (getattr(matcher, name, None) for name in ("value", "minimum", "exclusive_minimum"))
    lowest: float | None = next((low for low in lows if low is not None), None)
    if not may_hold(matcher, least=0, most=most):
        span = "a number of at least 0" if math.isinf(most) else f"a number from 0 to {most:g}"
        share = f": write {lowest / 100:g} for {lowest:g} %" if lowest and most == 1 else ""
        return f"hold for some {target}, which is {span}{share}"
    if found.is_percent and lowest is not None and 0 < lowest < 1:
        # As a share it would hold for next to everything.
        return f"be in percent, as {target} is: write {100 * lowest:g} for {lowest:g}"
    return ""
