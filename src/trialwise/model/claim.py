"""Which inputs are tried, and what a verdict about them claims (§1.4.2, §8.2.1, §8.4.6).

The default is the service's mean success probability over exactly the inputs listed: fixed
prompts, random answers. Anything wider has to be declared, and named.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

from trialwise.declarations.signatures import Arg
from trialwise.errors import InvalidArgument
from trialwise.validation import require_count, require_member, require_positive, require_text


class PopulationClaim(StrEnum):
    """Which population the verdict is about."""

    FIXED_INPUTS = "fixed-inputs"
    """The service's mean success probability over exactly these inputs, and no others."""
    FINITE_CORPUS = "finite-corpus"
    """An enumerated corpus, each input at most once: its own rate, known or sampled."""
    SUPERPOPULATION = "superpopulation"
    """A named population that the inputs are taken to represent."""
    NO_GENERALISATION = "no-generalisation"
    """The trials of this run and nothing else."""


class TargetEstimand(StrEnum):
    """Which rate is estimated if inputs have different rates."""

    CALL_WEIGHTED = "call-weighted"
    PROMPT_WEIGHTED = "prompt-weighted"
    PRODUCTION_WEIGHTED = "production-weighted"
    SEVERITY_WEIGHTED = "severity-weighted"
    STRATUM_WEIGHTED = "stratum-weighted"
    NO_GENERALISATION = "no-generalisation"

    @property
    def is_weighted(self) -> bool:
        """Whether it needs the weights of inputs or strata."""
        return self.weighs_inputs or self is TargetEstimand.STRATUM_WEIGHTED

    @property
    def weighs_inputs(self) -> bool:
        """Whether it needs the weight of each input."""
        return self in (TargetEstimand.PRODUCTION_WEIGHTED, TargetEstimand.SEVERITY_WEIGHTED)


class SamplingMode(StrEnum):
    """How inputs came to be tried."""

    WITH_REPLACEMENT = "with-replacement"
    WITHOUT_REPLACEMENT = "without-replacement"
    EXHAUSTIVE = "exhaustive"
    ADAPTIVE = "adaptive"
    EXTERNALLY_SUPPLIED = "externally-supplied"


class Estimator(StrEnum):
    """Estimators that take inputs, not calls, as the sampled units."""

    PROMPTS = "prompts"
    """Clopper and Pearson's interval on the number of inputs: safe whatever the inputs do."""
    KORN_GRAUBARD = "korn-graubard"
    """Clopper and Pearson's interval on the effective number of trials; narrower, and optimistic
    where few inputs are bad."""
    STRATIFIED = "stratified"
    """The exact interval of a weighted mean of strata."""
    GEE = "gee"
    """Generalised estimating equations with an exchangeable correlation; approximate."""
    CLUSTER_BOOTSTRAP = "cluster-bootstrap"
    """The BCa interval of resampled inputs; approximate."""
    BETA_BINOMIAL = "beta-binomial"
    """Rates of inputs that follow a beta distribution; approximate."""

    @property
    def takes_inputs(self) -> bool:
        """Whether inputs are the sampled units."""
        return self is not Estimator.STRATIFIED

    @property
    def is_model(self) -> bool:
        """Whether a model says how alike the trials of one input are."""
        return self in (Estimator.GEE, Estimator.CLUSTER_BOOTSTRAP, Estimator.BETA_BINOMIAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What the verdicts of a run claim, and by which estimator.

    Args:
        population: Which population the verdict is about.
        population_name: The name of the population of a superpopulation claim.
        representativeness: Why the inputs represent the population.
        estimand: Which rate is estimated if inputs have different rates.
        estimator: An estimator that uses inputs as the sampled units.

    >>> Claim().population
    <PopulationClaim.FIXED_INPUTS: 'fixed-inputs'>
    >>> Claim(population="superpopulation")
    Traceback (most recent call last):
        ...
    trialwise.errors.InvalidArgument: population_name must name the population that a
    superpopulation claim is about, got ''
    """

    population: PopulationClaim = PopulationClaim.FIXED_INPUTS
    population_name: Annotated[str, Arg(key="name")] = ""
    representativeness: str = ""
    estimand: TargetEstimand = TargetEstimand.CALL_WEIGHTED
    estimator: Annotated[Estimator | None, Arg(default="the binomial rule")] = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "population", require_member("population", self.population, PopulationClaim))
        put(self, "estimand", require_member("estimand", self.estimand, TargetEstimand))
        if self.estimator is not None:
            put(self, "estimator", require_member("estimator", self.estimator, Estimator))
        # Who claims more than the inputs has to say of what, or nobody can object to it (§8.4.6).
        if self.population is PopulationClaim.SUPERPOPULATION and not self.population_name.strip():
            allowed = "name the population that a superpopulation claim is about"
            raise InvalidArgument("population_name", self.population_name, allowed)

    def about(self, inputs: int) -> str:
        """Return whom the verdict speaks of, as the rest of a sentence starting "This is".

        >>> Claim().about(12)
        'about these 12 inputs, not about others'
        """
        match self.population:
            case PopulationClaim.FIXED_INPUTS:
                which = "this input, not about others" if inputs == 1 else None
                return f"about {which or f'these {inputs} inputs, not about others'}"
            case PopulationClaim.FINITE_CORPUS:
                return f"about this corpus of {inputs} inputs, not about others"
            case PopulationClaim.SUPERPOPULATION:
                return f"about {self.population_name}, as far as the inputs represent it"
            case PopulationClaim.NO_GENERALISATION:
                return "about the trials of this run and nothing else"


# The inputs of one experiment: a named, versioned list that every criterion shares (§1.4.2).


class SamplingRole(StrEnum):
    """What a sampling is evidence of; the three challenge samplings must not be confused (§1.4.5b).

    Red-team inputs go to the whole application and show what reaches a user; candidate outputs go
    to the guardrail itself and show what it blocks.
    """

    UNSPECIFIED = "unspecified"
    REPRESENTATIVE = "representative"
    RED_TEAM = "red-team"
    HARMFUL_CANDIDATES = "harmful-candidates"
    HARMLESS_CANDIDATES = "harmless-candidates"


#: Chosen to be hard, so that they stand for no traffic unless somebody argues it.
CHALLENGES = frozenset(
    {SamplingRole.RED_TEAM, SamplingRole.HARMFUL_CANDIDATES, SamplingRole.HARMLESS_CANDIDATES}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One thing to ask the service.

    >>> Input(id="sum", value="What is 15 * 37?", expected="555").expected
    '555'
    """

    id: str
    value: Any
    """What the service is given."""
    expected: Any = None
    """What a right reply says or is: for postconditions, and never shown to the service."""
    stratum: str | None = None
    repetitions: int = 1
    """How often it is drawn for every once of an input with one repetition."""
    weight: float = 1.0
    """Its share of a weighted estimand: of production traffic, of severity."""
    cluster: str | None = None
    """What it has in common with other inputs: a paraphrase family, a template, a batch, a region
    or a block of time. Inputs of one cluster are no independent draws."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What somebody wants to know of it later. It is kept and shown, and nobody else sees it."""

    def __post_init__(self) -> None:
        require_text("id", self.id, "be a text that names the input")
        require_count("repetitions", self.repetitions, minimum=1)
        if self.cluster is not None:
            require_text("cluster", self.cluster, "be a text that names the cluster")
        given: object = self.metadata
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            raise InvalidArgument("metadata", given, "be a mapping of names to values")
        # An infinite weight would make the rate of one input that of all.
        if not math.isfinite(require_positive("weight", self.weight)):
            raise InvalidArgument("weight", self.weight, "be finite")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """A list of inputs with an identity.

    >>> sampling = Sampling.of(["What is 15 * 37?", "Capital of Australia?"])
    >>> [one.id for one in sampling.inputs], sampling.slots
    (['1', '2'], 2)
    """

    inputs: tuple[Input, ...]
    identifier: str = "inputs"
    version: str = ""
    role: SamplingRole | str = SamplingRole.UNSPECIFIED
    description: str = ""
    """What a reader should know of its origin, such as how it was redacted."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", tuple(self.inputs))
        if not self.inputs:
            raise InvalidArgument("inputs", [], "hold at least one input")
        object.__setattr__(self, "role", require_member("role", self.role, SamplingRole))
        positions: dict[str, int] = {}
        for position, one in enumerate(self.inputs):
            # A journal knows a trial by the name of its input, which must mean one input.
            if one.id in positions:
                allowed = f"be given once: inputs {positions[one.id] + 1} and {position + 1} share"
                raise InvalidArgument("id", one.id, f"{allowed} one")
            positions[one.id] = position

    @classmethod
    def of(
        cls,
        values: Iterable[Any],
        *,
        identifier: str = "inputs",
        version: str = "",
        role: SamplingRole | str = SamplingRole.UNSPECIFIED,
        description: str = "",
    ) -> Sampling:
        """Return the sampling of plain values, numbered from 1; an `Input` stays what it is."""
        # A text is a list of characters to Python, and nobody means that.
        if isinstance(values, str | bytes | Mapping):
            raise InvalidArgument("inputs", values, "be a list of inputs")
        inputs = tuple(
            value if isinstance(value, Input) else Input(id=str(number), value=value)
            for number, value in enumerate(values, start=1)
        )
        return cls(
            inputs=inputs,
            identifier=identifier,
            version=version,
            role=role,
            description=description,
        )

    @property
    def slots(self) -> int:
        """Draws in one balanced pass: every input as often as its repetitions say."""
        return sum(one.repetitions for one in self.inputs)

    @property
    def strata(self) -> tuple[str, ...]:
        """The strata in order of appearance."""
        return tuple(dict.fromkeys(one.stratum for one in self.inputs if one.stratum is not None))

    @property
    def clusters(self) -> tuple[str, ...]:
        """The clusters in order of appearance."""
        return tuple(dict.fromkeys(one.cluster for one in self.inputs if one.cluster is not None))

    @property
    def label(self) -> str:
        """Identifier and version, as reports name it."""
        return f"{self.identifier} {self.version}".strip()


# --- What a run or a criterion is for: evidence, or a quick check ---------------------------------


class Intent(StrEnum):
    """What the run is for (companion §5.7)."""

    VERIFICATION = "VERIFICATION"
    """Evidence: a design that cannot support its claim is refused before the first trial."""
    SMOKE = "SMOKE"
    """A quick check: weak designs are allowed, and the report says that it is not evidence."""
