"""What a contract promises, how it is run, and what it says beside its service and inputs.

A suite file and a pytest marker say it in the same keys; the reader says where they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from trialwise.declarations.signatures import build_declared, setting_keys
from trialwise.declarations.structures import Fields, Record
from trialwise.declarations.written import INVALID, Invalid, Reader, to_node
from trialwise.errors import InvalidArgument
from trialwise.model import contract
from trialwise.model.baseline import Covariate
from trialwise.model.claim import Claim, Sampling
from trialwise.model.criterion import Criterion
from trialwise.model.gate import GATES
from trialwise.model.options import RunOptions
from trialwise.suite.check_keys import CheckSpec, GraderSpec
from trialwise.suite.gates import build_gates
from trialwise.suite.inputs import build_inputs
from trialwise.suite.reading_context import Context, check_sampling, make_model, make_part


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
    readers: dict[str, Callable[[Fields], Any]] = {
        "claim": partial(make_part, owner=Claim, context=reader),
        "latency": lambda given: make_model(partial(_latency, given), given, reader),
        "prevalence": partial(make_part, owner=contract.Prevalence, context=reader),
        "validity": partial(make_part, owner=contract.Validity, context=reader),
    }
    given = {name: fields.get(name) for name in readers}
    # One that is not sound was reported when it was read.
    sound = {n: one for n, one in given.items() if isinstance(one, Fields) and one.sound}
    return {
        **{name: readers[name](one) for name, one in sound.items()},
        "covariates": build_covariates(fields, reader),
        **build_factors(fields, reader),
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

    keys = tuple(key for key in CONTRACT.keys if key.name in contract.MARKER_PARTS)
    # Values are written as a suite would write them, or are objects of the model.
    written = {
        name: value
        for name, value in given.items()
        if all(
            isinstance(item, Mapping | str)
            for item in (value if isinstance(value, list | tuple) else [value])
        )
    }
    reader = Reader()
    fields = Record("marker", keys).read(to_node(written), "@pytest.mark.trials", reader)
    assert isinstance(fields, Fields)
    objects = {name: value for name, value in given.items() if name not in written}
    built = build_parts(fields, criteria, [sampling], reader)
    return {**built, **objects}


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


def _latency(given: Fields) -> contract.Latency:
    """Limits on latency."""
    limits = [
        contract.LatencyConstraint(percentile=one, limit_s=given[one])
        for one in contract.PERCENTILES
        if one in given
    ]
    # A limit of one's own and the baseline's for one percentile would be two tests under one name.
    for one in given.get("baseline", ()):
        if one in given:
            raise InvalidArgument("baseline", one, f"leave out {one}, which has a limit")
        limits.append(contract.LatencyConstraint(percentile=one))
    return contract.Latency(
        constraints=tuple(limits), **given.given("enforced", "confidence", "sampling")
    )


def build_covariates(fields: Fields, context: Reader) -> tuple[Covariate, ...]:
    """Build the covariates that are sound."""
    built: dict[str, Covariate] = {}
    for one in fields.get("covariates", ()):
        made_one: Covariate | Invalid = INVALID
        if isinstance(one, str):
            # The clock gives their values, and their kinds are name enough.
            made_one, node = Covariate(name=one, kind=one), fields.at("covariates")
        elif one.sound:
            made_one, node = make_model(partial(_covariate, one), one, context), one.at("name")
        if isinstance(made_one, Invalid):
            continue
        # Two values of one condition could not be matched with the one of a baseline.
        if made_one.name in built:
            context.refuse(node, f"the covariate `{made_one.name}` is declared twice")
        built[made_one.name] = made_one
    return tuple(built.values())


def _covariate(given: Fields) -> Covariate:
    values = given.given("name", "kind", "value", "environment", "critical", "zone")
    if "window" in given:
        hours = given["window"] / 3600
        # A window is named by the hours it begins at, such as 08:00/4h, in baselines as well.
        if hours != int(hours):
            raise InvalidArgument("window_hours", hours, "be whole hours, such as 4h")
        values["window_hours"] = int(hours)
    return Covariate(**values)


def build_factors(fields: Fields, context: Reader) -> dict[str, Any]:
    """Return the factors of a contract, and the names of those whose change refuses a comparison.

    One from the environment is recorded by its value.
    """
    given = fields.get("factors")
    factors: dict[str, str] = {}
    critical = []
    for name, value in (given.values if isinstance(given, Fields) else {}).items():
        if not isinstance(value, Fields):
            factors[name] = value
            continue
        if not value.sound:
            continue
        if value.get("critical"):
            critical.append(name)
        variable = value.get("environment")
        found = value["value"] if "value" in value else context.variables.get(variable or "")
        if found is not None:
            factors[name] = found
        elif variable is not None:
            # An unset variable is no value: a baseline would be compared with a factor nobody
            # knows.
            message = f"the environment variable {variable} is not set"
            context.refuse(value.at("environment"), message)
    return {"factors": factors, "critical_factors": tuple(critical)}


# --- What a contract of a suite promises: its criteria, and the samplings they run over -----------

_QUESTIONS = ("at_least", "no_worse_than", "never_fails", "mean_at_least")


def build_samplings(fields: Fields, context: Context) -> dict[str, Sampling] | Invalid:
    """Build the samplings of a contract by name."""
    # Neither goes before the other: which of the lists is meant, only the author knows.
    if "inputs" in fields.nodes and "samplings" in fields.nodes:
        message = "`inputs` and `samplings` exclude one another: keep one"
        return context.refuse(fields.keys["samplings"], message)
    several = fields.get("samplings")
    if "inputs" in fields.nodes:
        several = Fields(fields.node)
        several.take(fields, ["inputs"])
    elif "samplings" not in fields.nodes:
        return context.refuse(fields.node, "there are no `inputs`: say what the service is asked")
    if not isinstance(several, Fields):
        return INVALID
    built = {name: _sampling(name, several.get(name, INVALID), context) for name in several.nodes}
    sound = {name: one for name, one in built.items() if not isinstance(one, Invalid)}
    return sound if len(sound) == len(built) else INVALID


def _sampling(name: str, given: Any, context: Context) -> Sampling | Invalid:
    """Return a sampling from its inputs, or from the mapping that holds them."""
    is_record = isinstance(given, Fields) and "inputs" in given.nodes
    inputs = given.get("inputs", INVALID) if is_record else given
    found = build_inputs(inputs, context)
    if isinstance(found, Invalid):
        return found
    more = given.given("version", "role", "description") if is_record else {}
    return Sampling(inputs=found, identifier=name, **more)


def build_criteria(
    fields: Fields, samplings: list[str] | None, context: Context
) -> tuple[Criterion, ...]:
    """Build the criteria that are sound.

    Args:
        fields: The contract's.
        samplings: Its samplings, where they are known.
        context: The suite being read.
    """
    gates = [fields.get(name) for name in GATES if name in fields.nodes]
    if "criteria" not in fields.nodes and not gates:
        message = "there are no `criteria`: say what is promised, or add a gate such as `metrics`"
        context.refuse(fields.node, message)
    given: list[Fields] = fields.get("criteria", [])
    # By name, since baselines and reports find a criterion by nothing else.
    lines: dict[str, int] = {}
    for one in given:
        name = one.get("name", "")
        if name in lines:
            message = f"the name `{name}` is that of the criterion on line {lines[name]} already"
            context.refuse(one.at("name"), message)
        elif name:
            lines[name] = one.node.line + 1
        check_sampling(one, samplings, f"the criterion `{name}`", context)
    graders: list[GraderSpec] = fields.get("graders", [])
    for grader in graders:
        check_sampling(grader.fields, samplings, f"the grader `{grader.name}`", context)
        if grader.name in lines:
            message = f"the name `{grader.name}` is taken: each grader and criterion has its own"
            context.refuse(grader.fields.at("name"), message)
        lines[grader.name or ""] = grader.fields.node.line + 1
    looked_at = [*given, *(one.fields for one in graders), *filter(None, gates)]
    used = {name for one in looked_at for name in (one.get("sampling"), *one.get("samplings", ()))}
    for name in samplings if samplings and len(samplings) > 1 else ():
        if name not in used:
            message = f"no criterion runs over `{name}`: trials that decide nothing are not run"
            context.refuse(fields["samplings"].keys[name], message)
    built = [_criterion(one, context) for one in given]
    built += [_grade_runs(one, context) for one in graders]
    return tuple(one for one in built if not isinstance(one, Invalid))


def _grade_runs(grader: GraderSpec, context: Context) -> Criterion | Invalid:
    """Build the criterion that a grader of runs is: reported, without a question."""
    check = grader.build(context)
    if isinstance(check, Invalid):
        return check
    more = grader.fields.given("pass_at", "sampling")
    build = partial(Criterion, grader.name or "?", check, report_only=True, **more)
    return make_model(build, grader.fields, context)


def _criterion(fields: Fields, context: Context) -> Criterion | Invalid:
    specs = [one for one in fields.values.values() if isinstance(one, CheckSpec)]
    # Checks that stand directly in the criterion come first, as people read them.
    specs += fields.get("postconditions", [])
    graders = fields.get("graders", [])
    checks = [spec.build(context) for spec in (*specs, *graders)]
    keys = setting_keys(Criterion)
    # A value that was refused must not be replaced by its default.
    if any(key.name in fields.nodes and key.name not in fields for key in keys):
        return INVALID
    values = {key.field: fields[key.name] for key in keys if key.name in fields}
    asked = sum(name in values and values[name] is not False for name in _QUESTIONS)
    # Reported when the keys were read: a criterion asks one question.
    if asked != 1 and (asked or not values.get("report_only")):
        return INVALID
    if graders and all(one is not INVALID for one in checks):
        # Beside graders a plain check counts as one of them.
        values["weights"] = (*(1.0 for _ in specs), *(one.weight for one in graders))
    # Whatever is wrong with its postconditions, what is wrong with its numbers is said, too.
    sound = [check for check in checks if check is not INVALID] or [_passes]
    build = partial(Criterion, fields.get("name", "?"), sound, **values)
    criterion = make_model(build, fields, context)
    return criterion if fields.sound and INVALID not in checks else INVALID


def _passes(reply: object) -> bool:
    """Stands in for postconditions that were refused; never run."""
    return reply is not None
