"""The inputs of one experiment: a named, versioned list that every criterion shares (§1.4.2)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from trialwise.errors import InvalidArgument
from trialwise.validation import require_choice, require_count, require_positive, require_text


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
        _check_metadata(self.metadata)
        if not math.isfinite(require_positive("weight", self.weight)):
            raise InvalidArgument("weight", self.weight, "be finite")


def _check_metadata(given: object) -> None:
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InvalidArgument("metadata", given, "be a mapping of names to values")


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
    _positions: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", tuple(self.inputs))
        if not self.inputs:
            raise InvalidArgument("inputs", [], "hold at least one input")
        role = require_choice("role", str(self.role), tuple(map(str, SamplingRole)))
        object.__setattr__(self, "role", SamplingRole(role))
        positions: dict[str, int] = {}
        for position, one in enumerate(self.inputs):
            if one.id in positions:
                allowed = f"be given once: inputs {positions[one.id] + 1} and {position + 1} share"
                raise InvalidArgument("id", one.id, f"{allowed} one")
            positions[one.id] = position
        object.__setattr__(self, "_positions", positions)

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

    def position(self, input_id: str) -> int:
        """Return where an input stands in the list."""
        return self._positions[input_id]
