"""What is promised of one service: its criteria, the inputs they are tried on, its latency."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Any

from trialwise import model
from trialwise.declarations.scalars import Rate
from trialwise.declarations.signatures import Arg, Share
from trialwise.errors import InvalidArgument
from trialwise.model.baseline import Covariate
from trialwise.model.claim import Claim, Sampling
from trialwise.model.criterion import Criterion
from trialwise.model.reply import Reply
from trialwise.validation import (
    require_choice,
    require_count,
    require_given,
    require_open_rate,
    require_positive,
    require_rate,
    require_text,
)

PERCENTILES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}
#: What a contract says beside its service, its inputs, its criteria and how it is run; a suite and
#: a pytest marker say it in the same keys.
MARKER_PARTS = (
    *("claim", "covariates", "factors", "latency", "prevalence", "validity"),
    *("reliability", "stability", "metrics"),
)
_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyConstraint:
    """One percentile and its limit in seconds; without a limit the baseline's counts."""

    percentile: str
    limit_s: float | None = None

    def __post_init__(self) -> None:
        require_choice("percentile", self.percentile, tuple(PERCENTILES))
        require_given(self, "limit_s", require_positive)

    @property
    def level(self) -> float:
        """The percentile as a fraction."""
        return PERCENTILES[self.percentile]


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """The second dimension: how long successful trials may take (§12).

    >>> [c.percentile for c in Latency.within(p95=0.5, p99=2.0).constraints]
    ['p95', 'p99']
    """

    constraints: tuple[LatencyConstraint, ...]
    enforced: bool = False
    """Advisory unless asked for: a baseline may come from other hardware (§12.6)."""
    confidence: float = 0.95
    sampling: str | None = None
    """Over which of the contract's samplings; None where there is only one."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "constraints", tuple(self.constraints))
        if not self.constraints:
            raise InvalidArgument("constraints", (), "hold at least one percentile")
        require_open_rate("confidence", self.confidence)
        given = [one.percentile for one in self.constraints]
        # Two limits on one percentile would be two tests of it, at the level of one.
        if len(set(given)) < len(given):
            raise InvalidArgument("constraints", given, "hold every percentile once")

    @classmethod
    def within(
        cls, *, enforced: bool = False, confidence: float = 0.95, **limits_s: float
    ) -> Latency:
        """Explicit limits, by percentile, in seconds."""
        constraints = tuple(
            LatencyConstraint(percentile=name, limit_s=limit) for name, limit in limits_s.items()
        )
        return cls(constraints=constraints, enforced=enforced, confidence=confidence)

    @classmethod
    def no_worse_than_baseline(
        cls, *percentiles: str, enforced: bool = False, confidence: float = 0.95
    ) -> Latency:
        """Limits that the baseline's own latencies give."""
        constraints = tuple(LatencyConstraint(percentile=name) for name in percentiles)
        return cls(constraints=constraints, enforced=enforced, confidence=confidence)

    @property
    def alpha(self) -> float:
        """1 − confidence, in decimals."""
        from trialwise.decimals import complement

        return complement(self.confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prevalence:
    """How often the generator proposes harmful content, from a monitor before the guardrail.

    A monitor behind the guardrail sees what reached the user, which is another quantity (§1.4.5b).

    Args:
        rate: How often the generator proposes harmful content.
        confidence: The confidence with which the rate is an upper bound.
        source: Where the monitor stands; only `pre-guardrail` bounds what the guardrail lets
            through.
        evidence: The source of the number.
    """

    rate: Share
    confidence: Annotated[float | None, Arg(kind=Rate(), default="known")] = None
    source: str
    evidence: str = ""

    def __post_init__(self) -> None:
        require_rate("rate", self.rate)
        # What is left behind a guardrail is the product of both rates (§1.4.5b).
        if self.source != "pre-guardrail":
            allowed = (
                "be pre-guardrail: behind the guardrail a monitor sees what was let through, which "
                "is another quantity"
            )
            raise InvalidArgument("source", self.source, allowed)
        require_given(self, "confidence", require_open_rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """How long a baseline of a contract is taken to stay representative (§8.4.2).

    Args:
        days: Days after the measurement for which a baseline is valid.
        grace_days: Days after that for which it is still accepted, with a warning.
    """

    days: int
    grace_days: int = 0

    def __post_init__(self) -> None:
        require_count("days", self.days, minimum=1)
        require_count("grace_days", self.grace_days)


@dataclass(frozen=True, slots=True)
class Contract:
    """A service and what is promised of it.

    Every sampling is an experiment of its own: all criteria that name it share its trials. A
    contract with one sampling need not name it.

    >>> from trialwise.model.criterion import Criterion
    >>> contract = Contract(
    ...     "sums", lambda question: "555",
    ...     [Criterion("answers", lambda text: "555" in text, at_least=0.9)],
    ...     sampling=["What is 15 * 37?"],
    ... )
    >>> list(contract.samplings)
    ['inputs']
    """

    name: str
    service: Any
    """A function, or anything with the methods of a `Service`."""
    criteria: Sequence[Criterion]
    _: KW_ONLY
    sampling: Any = None
    """A `Sampling`, a list of inputs, or several samplings by name."""
    claim: Claim = field(default_factory=Claim)
    latency: Latency | None = None
    covariates: Sequence[Covariate] = ()
    factors: Mapping[str, str] = field(default_factory=lambda: _NONE)
    """What was under test: model, temperature, prompt version, endpoint. Provenance, not index.
    What the service says of itself is added when a run is prepared."""
    critical_factors: Sequence[str] = ()
    """Factors whose change refuses a comparison with a baseline, unless it is overridden."""
    activity: Callable[[Reply], bool] | None = None
    """Whether a reply shows any work done; a trial without is classed `empty-run`."""
    before_each: Callable[..., object] | None = None
    """Called before each trial, such as to reset what is under test; takes any of `input`, `index`
    and `seed`, and may be async. If it raises, the trial is not measured."""
    prevalence: Prevalence | None = None
    """The share of harmful content before the guardrail; it bounds what reaches the user."""
    validity: Validity | None = None
    """How long its baselines are valid, where a baseline does not say so itself."""
    reliability: model.Reliability | None = None
    """What repeated runs of each input come to, and what is asked of that."""
    stability: model.Stability | None = None
    """How steady each run's session was, and what is asked of that."""
    metrics: model.Metrics | None = None
    """pass@k, pass^k and scores, and what is asked of them."""
    description: str = ""
    samplings: Mapping[str, Sampling] = field(init=False, repr=False, compare=False)
    """The experiments, by name."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        require_text("name", self.name, "be a text that names the contract")
        put(self, "criteria", tuple(self.criteria))
        put(self, "covariates", tuple(self.covariates))
        put(self, "critical_factors", tuple(self.critical_factors))
        put(self, "factors", MappingProxyType({k: str(v) for k, v in self.factors.items()}))
        # Such a run would PASS without having asked anything.
        if not self.criteria and not self.gates:
            raise InvalidArgument("criteria", (), "hold at least one criterion, or add a gate")
        put(self, "samplings", MappingProxyType(_samplings(self.sampling)))
        put(self, "criteria", (*self.criteria, *self._list_replies()))
        names = [criterion.name for criterion in self.criteria]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidArgument("criteria", twice, "have different names")
        if self.before_each is not None:
            _check_hook(self.before_each)
        if self.samplings:
            self._check_samplings()

    def _list_replies(self) -> Iterator[Criterion]:
        """Yield a criterion for each sampling that only gates look at: was there a reply?

        It is reported and decides nothing, so that trials are counted as everywhere else.
        """
        if not self.samplings:  # the inputs are given later
            return
        looked_at = {name for gate in self.gates for name in self.gate_experiments(gate)}
        used = {self.experiment_of(one) for one in self.criteria}
        for name in self.samplings:
            if name in looked_at and name not in used:
                of = f" [{name}]" if len(self.samplings) > 1 else ""
                yield Criterion(f"{REPLIED}{of}", replied, report_only=True, sampling=name)

    def _check_samplings(self) -> None:
        known = ", ".join(self.samplings)
        for criterion in self.criteria:
            if self.experiment_of(criterion) not in self.samplings:
                allowed = f"be one of the contract's: {known}"
                raise InvalidArgument("sampling", criterion.sampling, allowed)
            # Before the first trial: each trial of such an input would be paid for and say nothing.
            if any(map(_compares, criterion.checks)):
                self._check_expected(criterion)
        if self.latency and self.latency_experiment not in self.samplings:
            raise InvalidArgument("sampling", self.latency.sampling, f"be one of {known}")
        # Nobody would notice that inputs which were written down are never tried.
        unused = set(self.samplings) - {self.experiment_of(one) for one in self.criteria}
        if unused:
            allowed = "each have a criterion: trials that decide nothing are not run"
            raise InvalidArgument("samplings", sorted(unused), allowed)
        for gate in self.gates:
            for name in self.gate_experiments(gate):
                if name not in self.samplings:
                    raise InvalidArgument("sampling", name, f"be one of {known}")
            looked_at = self.gate_experiments(gate)
            gate.check_criteria(
                [one.name for one in self.criteria if self.experiment_of(one) in looked_at]
            )

    def _check_expected(self, criterion: Criterion) -> None:
        """Every input says what it expects: a trial of one that does not would be wasted."""
        for one in self.samplings[self.experiment_of(criterion)].inputs:
            if one.expected is None:
                allowed = f"be given for the input {one.id!r}: {criterion.name!r} compares with it"
                raise InvalidArgument("expected", None, allowed)

    @property
    def gates(self) -> tuple[model.Reliability | model.Stability | model.Metrics, ...]:
        """What is asked of numbers that only repeated runs have."""
        given = (self.reliability, self.stability, self.metrics)
        return tuple(gate for gate in given if gate is not None)

    def gate_experiments(self, gate: model.Gate) -> tuple[str, ...]:
        """Return the samplings whose runs a gate is about."""
        return tuple(self._find_named(one, gate.name) for one in gate.all_samplings)

    def experiment_of(self, criterion: Criterion) -> str:
        """Return the sampling a criterion runs over."""
        return self._find_named(criterion.sampling, f"criterion {criterion.name!r}")

    @property
    def latency_experiment(self) -> str:
        """The sampling whose latencies are decided."""
        assert self.latency is not None
        return self._find_named(self.latency.sampling, "latency")

    def _find_named(self, sampling: str | None, whose: str) -> str:
        if sampling is not None:
            return sampling
        if len(self.samplings) == 1:
            return next(iter(self.samplings))
        allowed = f"be named: the contract has {', '.join(self.samplings) or 'none'}"
        raise InvalidArgument(f"sampling of {whose}", None, allowed)

    def with_inputs(self, sampling: Any) -> Contract:
        """Return the same promise, tried on other inputs."""
        return replace(self, sampling=sampling)

    def with_only_inputs(self, input_ids: Collection[str]) -> Contract | None:
        """Return the same promise, tried on some of its inputs; None where it has none of them.

        What is asked of a sampling that has none of them is left out.

        Args:
            input_ids: The inputs to keep.
        """
        kept = {
            name: replace(one, inputs=inputs)
            for name, one in self.samplings.items()
            if (inputs := tuple(given for given in one.inputs if given.id in input_ids))
        }
        criteria = [one for one in self.criteria if self.experiment_of(one) in kept]
        if not criteria:
            return None
        changes: dict[str, Any] = {"sampling": kept, "criteria": criteria}
        if self.latency is not None and self.latency_experiment not in kept:
            changes["latency"] = None
        for gate in self.gates:
            if not kept.keys() >= set(self.gate_experiments(gate)):
                changes[gate.name] = None
        return replace(self, **changes)

    def with_service(self, service: Any) -> Contract:
        """Return the same promise of another service, such as a recording of this one."""
        return replace(self, service=service)

    def with_criteria(self, criteria: Sequence[Criterion]) -> Contract:
        """Return the same service on the same inputs, held to other criteria."""
        return replace(self, criteria=criteria)

    def with_only(self, names: Collection[str]) -> Contract:
        """Return the same service, held to some of its criteria and to nothing else.

        Args:
            names: The names of the criteria; at least one is the contract's.
        """
        criteria = [one for one in self.criteria if one.name in names]
        held = {self.experiment_of(one) for one in criteria}
        sampling = {name: one for name, one in self.samplings.items() if name in held}
        # Latency and gates are asked of all runs, and an answer about some would pass for it.
        dropped: dict[str, Any] = dict.fromkeys(
            ("latency", "prevalence", "reliability", "stability", "metrics")
        )
        return replace(self, criteria=criteria, sampling=sampling, **dropped)


#: What the criterion is called that stands for "the service replied".
REPLIED = "replied"


def replied(reply: Reply) -> bool:  # noqa: ARG001 - that there is one is all
    """Every reply passes; only a trial without one fails."""
    return True


def _check_hook(function: object) -> None:
    """Refuse a function that cannot be called before the first trial is paid for."""
    allowed = "be a function that takes any of `input`, `index` and `seed`, or nothing"
    if not callable(function):
        raise InvalidArgument("before_each", function, allowed)
    from inspect import Parameter, signature

    try:
        taken = signature(function).parameters.values()
    except (TypeError, ValueError):
        raise InvalidArgument("before_each", function, allowed) from None
    for one in taken:
        is_known = one.name in ("input", "index", "seed") and one.kind is not one.POSITIONAL_ONLY
        is_open = one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        if not is_known and not is_open and one.default is Parameter.empty:
            raise InvalidArgument("before_each", one.name, allowed)


def _compares(check: object) -> bool:
    """Return whether a postcondition needs an expected answer of the input."""
    # By its spelling and not by its class: the model knows no postcondition.
    match getattr(check, "spelling", None):
        case "as_expected":
            return True
        case "judge":
            return bool(getattr(check, "shows_expected", False))
        case "named" | "not":
            return _compares(getattr(check, "condition", None))
        case "all_of":
            return any(map(_compares, getattr(check, "checks", ())))
    return False


def _samplings(given: object) -> dict[str, Sampling]:
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {
            str(name): one if isinstance(one, Sampling) else Sampling.of(one, identifier=str(name))
            for name, one in given.items()
        }
    one = given if isinstance(given, Sampling) else Sampling.of(given)  # type: ignore[arg-type]
    return {one.identifier: one}
