"""How a contract is run and what it says beside its service, inputs and criteria.

A suite file and a pytest marker say it in the same keys; the reader says where they come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from trialwise.declarations.nearest_names import find_nearest, suggest_name
from trialwise.declarations.settings import setting_keys
from trialwise.declarations.signatures import build_declared
from trialwise.declarations.structures import Fields, Record
from trialwise.declarations.written import Invalid, PythonReader, PythonValue, Reader, show_value
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
from trialwise.model.gate import GATES, Expectation, Gate, find_target, targets_of
from trialwise.model.options import RunOptions
from trialwise.stats.trace_stability import StabilityFloors
from trialwise.suite.criterion_building import check_sampling
from trialwise.suite.reading_context import make_model, make_part

if TYPE_CHECKING:
    from trialwise.model.matcher import Matcher


#: The fields of the model, by the keywords of JSON Schema.
_LIMITS = {
    "minimum": "minimum",
    "maximum": "maximum",
    "exclusiveMinimum": "exclusive_minimum",
    "exclusiveMaximum": "exclusive_maximum",
}


def build_gates(
    fields: Fields, criteria: Sequence[Criterion], samplings: list[str] | None, context: Reader
) -> dict[str, Gate]:
    """Build the gates that are sound, by name.

    Args:
        fields: The contract's.
        criteria: Those that are sound.
        samplings: Its samplings, where they are known.
        context: The suite being read.
    """
    built: dict[str, Gate] = {}
    for name in GATES:
        given = fields.get(name)
        if not isinstance(given, Fields):
            continue
        if not _names_samplings(given, samplings, context):
            check_sampling(given, samplings, f"`{name}`", context)
        expect = _expectations(name, given, context)
        if not given.sound or expect is None or not _weights_are_sound(given, context):
            continue
        weights = {}
        if name == "metrics" and not {"weights", "criterion"} & given.nodes.keys():
            weights = {one.name: one.weight for one in fields.get("graders", [])}
        gate = make_model(partial(_gate, name, given, expect, weights), given, context)
        if isinstance(gate, Invalid) or samplings is None:
            continue
        built[name] = gate
        _check_criteria(gate, given, criteria, samplings, context)
    return built


def _names_samplings(given: Fields, samplings: list[str] | None, context: Reader) -> bool:
    """Return whether a gate names several samplings; those that there are not are reported."""
    several: list[str] = given.get("samplings", [])
    for name in several if samplings is not None else ():
        if name not in (samplings or ()):
            hint = suggest_name(name, samplings or [], f"there are {_list_words(samplings or [])}")
            context.refuse(given.at("samplings"), f"there is no sampling `{name}`; {hint}")
    return bool(several)


def _gate(
    name: str, given: Fields, expect: tuple[Expectation, ...], weights_of: dict[str, float]
) -> Gate:
    values = {key: one for key, one in given.values.items() if key != "expect"}
    if isinstance(floors := values.get("floors"), Fields):
        values["floors"] = StabilityFloors(**floors.values)
    if isinstance(weights := values.get("weights"), Fields):
        values["weights"] = weights.values
    if weights_of:
        values["weights"] = weights_of
    if isinstance(k := values.get("k"), int):
        values["k"] = (k,)
    return GATES[name](expect=expect, **values)


def _check_criteria(
    gate: Gate,
    given: Fields,
    criteria: Sequence[Criterion],
    samplings: Sequence[str],
    context: Reader,
) -> None:
    only = samplings[0] if len(samplings) == 1 else None
    looked_at = [one or only for one in gate.all_samplings]
    if None in looked_at:
        return
    names = [one.name for one in criteria if (one.sampling or samplings[0]) in looked_at]
    weights = given.get("weights")
    unknown = [one for one in weights.nodes if one not in names] if weights else []
    for name in unknown:
        hint = suggest_name(name, names, f"there are {_list_words(names)}")
        context.refuse(weights.keys[name], f"there is no criterion `{name}` here; {hint}")
    promised = [name for name in names if not _is_reported(name, criteria)]
    if weights and not unknown and not set(promised) <= weights.nodes.keys():
        # Left out by mistake, it would silently not count.
        message = f"`weights` must give one weight to each of {', '.join(promised)}, got a mapping"
        context.refuse(given.at("weights"), message)
    elif not unknown:
        make_model(partial(gate.check_criteria, names), given, context)


def _is_reported(name: str, criteria: Sequence[Criterion]) -> bool:
    return any(one.report_only for one in criteria if one.name == name)


def _list_words(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _weights_are_sound(given: Fields, context: Reader) -> bool:
    """Each is above 0: what counts nothing is left to `criterion`."""
    weights = given.get("weights")
    wrong = [name for name, weight in weights.values.items() if weight <= 0] if weights else []
    for name in wrong:
        node = weights.at(name)
        context.refuse(node, f"the weight of `{name}` must be above 0, got {show_value(node)}")
    return not wrong


def _expectations(gate: str, given: Fields, context: Reader) -> tuple[Expectation, ...] | None:
    """Return the expectations; None once something is wrong with one of them."""
    found: list[Expectation] = []
    asked: list[Fields] = given.get("expect", [])
    for one in asked:
        target, matcher = one.get("target"), one.get("matcher")
        if target is None or not isinstance(matcher, Fields) or not one.sound:
            continue
        if find_target(target) is None or not target.startswith(f"{gate}."):
            context.refuse(one.at("target"), _unknown(gate, target))
            continue
        match = _matcher(matcher, context)
        if isinstance(match, Invalid):
            continue
        try:
            found.append(Expectation(target=target, matcher=match))
        except InvalidArgument as error:
            # The limit is in words, since its mapping would be shown as one.
            message = f"`matcher` must {error.allowed}, got `{match}`"
            context.refuse(one.at("matcher"), message)
    return tuple(found) if len(found) == len(asked) else None


def _unknown(gate: str, target: str) -> str:
    known = targets_of(gate)
    # All of them begin alike, so that only the rest tells which is near.
    names = [one.removeprefix(f"{gate}.") for one in known]
    close = find_nearest(target.removeprefix(f"{gate}."), names)
    hint = f"there are {', '.join(known)}"
    if close:
        path = f"{gate}.{close}"
        hint = f"did you mean `{path}`?"
        if path.endswith(".K"):
            hint = f"it ends with a number of trials, such as `{path.removesuffix('K')}3`"
    return f"there is no target `{target}` in `{gate}`; {hint}"


def _matcher(fields: Fields, context: Reader) -> Matcher | Invalid:
    from trialwise.model.matcher import AllOf, AnyOf, Exact, Not, NoWorse, NumberSchema

    ((name, given),) = fields.values.items()
    if name == "exact":
        return make_model(lambda: Exact(value=given), fields, context)
    if name == "schema":
        limits = {_LIMITS[limit]: value for limit, value in given.values.items()}
        return make_model(lambda: NumberSchema(**limits), fields, context)
    if name == "no_worse_than":
        margin = given.get("margin", 0.0) if isinstance(given, Fields) else 0.0
        return make_model(lambda: NoWorse(margin=margin), fields, context)
    parts = [_matcher(one, context) for one in (given if isinstance(given, list) else [given])]
    sound = tuple(one for one in parts if not isinstance(one, Invalid))
    if len(sound) < len(parts):
        return next(one for one in parts if isinstance(one, Invalid))
    if name == "not":
        return Not(matcher=sound[0])
    return AllOf(matchers=sound) if name == "all_of" else AnyOf(matchers=sound)


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
