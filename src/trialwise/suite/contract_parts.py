"""How a contract is run and what it says beside its service, inputs and criteria.

A suite file and a pytest marker say it in the same keys; the reader says where they come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from trialwise.declarations.settings import setting_keys
from trialwise.declarations.signatures import build_declared
from trialwise.declarations.structures import Fields, Record
from trialwise.declarations.written import Invalid, PythonReader, PythonValue, Reader
from trialwise.errors import InvalidArgument
from trialwise.model.claim import Claim
from trialwise.model.contract import (
    MARKER_PARTS,
    PERCENTILES,
    Latency,
    LatencyConstraint,
    Prevalence,
    Validity,
)
from trialwise.model.covariate import Covariate
from trialwise.model.criterion import Criterion
from trialwise.model.options import RunOptions
from trialwise.suite.gate_building import build_gates
from trialwise.suite.reading_context import make_model, make_part


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
        "prevalence": make_part(
            fields, "prevalence", lambda given: Prevalence(**given.values), None, reader
        ),
        "validity": make_part(
            fields, "validity", lambda given: Validity(**given.values), None, reader
        ),
        "covariates": build_covariates(fields, reader),
        "factors": build_factors(fields, reader),
        "critical_factors": list_critical(fields),
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
    """Return whether a value is written as a suite would, and is no object of the model."""
    items = value if isinstance(value, list | tuple) else [value]
    return all(isinstance(item, Mapping | str) for item in items)


def build_options(
    fields: Fields, samplings: list[str] | None, context: Reader
) -> RunOptions | Invalid:
    """Build the options of a run.

    Args:
        fields: The contract's.
        samplings: Its samplings, where they are known.
        context: The suite being read.
    """
    sizes = fields.get("trials")
    for name, key in sizes.keys.items() if isinstance(sizes, Fields) else ():
        if samplings is not None and name not in samplings:
            context.refuse(key, f"there is no sampling `{name}`")
    keys = setting_keys(RunOptions)
    return make_model(lambda: build_declared(RunOptions, keys, fields, context), fields, context)


def names_of(fields: Fields, key: str) -> tuple[str, ...]:
    """One name or several, as several."""
    given = fields.get(key, ())
    return (given,) if isinstance(given, str) else tuple(given)


def build_claim(given: Fields) -> Claim:
    """Return what the verdict is about."""
    names = {"name": "population_name"}
    return Claim(**{names.get(name, name): value for name, value in given.values.items()})


def build_latency(given: Fields) -> Latency:
    """Limits on latency."""
    limits = [
        LatencyConstraint(percentile=one, limit_s=given[one]) for one in PERCENTILES if one in given
    ]
    for one in given.get("baseline", ()):
        if one in given:
            raise InvalidArgument("baseline", one, f"leave out {one}, which has a limit")
        limits.append(LatencyConstraint(percentile=one))
    return Latency(constraints=tuple(limits), **given.given("enforced", "confidence", "sampling"))


def build_covariates(fields: Fields, context: Reader) -> tuple[Covariate, ...]:
    """Build the covariates that are sound."""
    built: dict[str, Covariate] = {}
    for one in fields.get("covariates", ()):
        if isinstance(one, str):
            # The clock gives their values, and their kinds are name enough.
            made_one: Covariate | Invalid = Covariate(name=one, kind=one)
            node = fields.at("covariates")
        else:
            if not one.sound:
                continue
            made_one = make_model(partial(_covariate, one), one, context)
            node = one.at("name")
        if isinstance(made_one, Invalid):
            continue
        if made_one.name in built:
            context.refuse(node, f"the covariate `{made_one.name}` is declared twice")
        built[made_one.name] = made_one
    return tuple(built.values())


def _covariate(given: Fields) -> Covariate:
    values = given.given("name", "kind", "value", "environment", "critical", "zone")
    if "window" in given:
        hours = given["window"] / 3600
        if hours != int(hours):
            raise InvalidArgument("window_hours", hours, "be whole hours, such as 4h")
        values["window_hours"] = int(hours)
    return Covariate(**values)


def build_factors(fields: Fields, context: Reader) -> dict[str, str]:
    """Return the factors of a contract; one from the environment is recorded by its value."""
    given = fields.get("factors")
    factors: dict[str, str] = {}
    for name, value in (given.values if isinstance(given, Fields) else {}).items():
        if not isinstance(value, Fields):
            factors[name] = value
        elif value.sound and "value" in value:
            factors[name] = value["value"]
        elif value.sound and "environment" in value:
            variable = value["environment"]
            found = context.variables.get(variable)
            if found is None:
                message = f"the environment variable {variable} is not set"
                context.refuse(value.at("environment"), message)
            else:
                factors[name] = found
    return factors


def list_critical(fields: Fields) -> tuple[str, ...]:
    """List the factors whose change refuses a comparison."""
    given = fields.get("factors")
    named = given.values if isinstance(given, Fields) else {}
    return tuple(
        name
        for name, value in named.items()
        if isinstance(value, Fields) and value.sound and value.get("critical")
    )
