"""What a contract says beside its service, its inputs and its criteria, from declared keys.

A suite file and a pytest marker say it in the same keys; the reader says where they come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trialwise.declarations.python_values import PythonReader, PythonValue
from trialwise.declarations.structures import Fields, Record
from trialwise.declarations.written import Reader
from trialwise.model.claim import Claim
from trialwise.model.contract import MARKER_PARTS, Prevalence
from trialwise.model.criterion import Criterion
from trialwise.suite.gate_building import build_gates
from trialwise.suite.model_making import make_part
from trialwise.suite.option_building import (
    build_claim,
    build_covariates,
    build_factors,
    build_latency,
)

__all__ = ["build_parts", "read_parts"]


def build_parts(
    fields: Fields, criteria: Sequence[Criterion], samplings: list[str] | None, reader: Reader
) -> dict[str, Any]:
    """Return the parts of a contract by the names of its fields.

    Args:
        fields: What was read.
        criteria: The criteria that are sound.
        samplings: The names of the samplings, where they are known.
        reader: Takes problems.
    """
    return {
        "claim": make_part(fields, "claim", build_claim, Claim(), reader),
        "latency": make_part(fields, "latency", build_latency, None, reader),
        "prevalence": make_part(fields, "prevalence", _prevalence, None, reader),
        "covariates": build_covariates(fields, reader),
        "factors": build_factors(fields, reader),
        **build_gates(fields, criteria, samplings, reader),
    }


def read_parts(
    given: Mapping[str, Any], criteria: Sequence[Criterion], sampling: str
) -> dict[str, Any]:
    """Return the parts of a contract from Python values; objects of the model stay as they are.

    Args:
        given: Some of `MARKER_PARTS`, each as a suite would write it.
        criteria: The criteria of the contract.
        sampling: The name of its sampling.

    Raises:
        ValueRefused: A value is not what its key takes.
    """
    from trialwise.suite.keys import CONTRACT

    keys = tuple(key for key in CONTRACT.keys if key.name in MARKER_PARTS)
    written = {name: value for name, value in given.items() if _is_written(value)}
    reader = PythonReader()
    fields = Record("marker", keys).read(PythonValue(written), "@pytest.mark.trials", reader)
    assert isinstance(fields, Fields)
    objects = {name: value for name, value in given.items() if name not in written}
    built = build_parts(fields, criteria, [sampling], reader)
    return {**built, **objects}


def _is_written(value: object) -> bool:
    """Whether a value is written as a suite would, and is no object of the model."""
    items = value if isinstance(value, list | tuple) else [value]
    return all(isinstance(item, Mapping | str) for item in items)


def _prevalence(given: Fields) -> Prevalence:
    return Prevalence(**given.values)
