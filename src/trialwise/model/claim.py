"""What a verdict is about: these inputs, a corpus, a population, or only the run (§8.2.1, §8.4.6).

The default is the service's mean success probability over exactly the inputs listed: fixed
prompts, random answers. Anything wider has to be declared, and named.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from trialwise.declarations.signatures import Arg
from trialwise.errors import InvalidArgument
from trialwise.validation import require_choice


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
        given = require_choice("population", str(self.population), tuple(map(str, PopulationClaim)))
        put(self, "population", PopulationClaim(given))
        given = require_choice("estimand", str(self.estimand), tuple(map(str, TargetEstimand)))
        put(self, "estimand", TargetEstimand(given))
        if self.estimator is not None:
            given = require_choice("estimator", str(self.estimator), tuple(map(str, Estimator)))
            put(self, "estimator", Estimator(given))
        if self.population is PopulationClaim.SUPERPOPULATION and not self.population_name.strip():
            allowed = "name the population that a superpopulation claim is about"
            raise InvalidArgument("population_name", self.population_name, allowed)

    @property
    def is_weighted(self) -> bool:
        """Whether it needs the weights of inputs or strata."""
        return self.estimand.is_weighted

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
