"""What a contract of a suite promises: its criteria, and the samplings they run over."""

from __future__ import annotations

from typing import Any

from trialwise.declarations.nearest_names import suggest_name
from trialwise.declarations.settings import setting_keys
from trialwise.declarations.structures import Fields
from trialwise.declarations.written import INVALID, Invalid, Reader
from trialwise.model.criterion import Criterion
from trialwise.model.sampling import Sampling
from trialwise.suite.check_keys import CheckSpec, GraderSpec
from trialwise.suite.input_building import build_inputs
from trialwise.suite.reading_context import Context, make_model

_GATES = ("reliability", "stability", "metrics")
_QUESTIONS = ("at_least", "no_worse_than", "never_fails", "mean_at_least")


def build_samplings(fields: Fields, context: Context) -> dict[str, Sampling] | Invalid:
    """Build the samplings of a contract by name."""
    if "inputs" in fields.nodes and "samplings" in fields.nodes:
        message = "`inputs` and `samplings` exclude one another: keep one"
        return context.refuse(fields.keys["samplings"], message)
    if "inputs" in fields.nodes:
        one = _sampling("inputs", fields.get("inputs", INVALID), context)
        return one if isinstance(one, Invalid) else {"inputs": one}
    if "samplings" not in fields.nodes:
        return context.refuse(fields.node, "there are no `inputs`: say what the service is asked")
    several = fields.get("samplings")
    if not isinstance(several, Fields):
        return INVALID
    built = {name: _sampling(name, given, context) for name, given in several.values.items()}
    sound = {name: one for name, one in built.items() if not isinstance(one, Invalid)}
    return sound if len(sound) == len(several.nodes) else INVALID


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
    gates = [fields.get(name) for name in _GATES if name in fields.nodes]
    if "criteria" not in fields.nodes and not gates:
        message = "there are no `criteria`: say what is promised, or add a gate such as `metrics`"
        context.refuse(fields.node, message)
    given: list[Fields] = fields.get("criteria", [])
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
    looked_at = [*given, *(one.fields for one in graders)]
    _check_used(fields, [*looked_at, *(one for one in gates if one)], samplings, context)
    built = [_criterion(one, context) for one in given]
    built += [_grade_runs(one, context) for one in graders]
    return tuple(one for one in built if not isinstance(one, Invalid))


def check_sampling(
    fields: Fields, samplings: list[str] | None, whose: str, context: Reader
) -> None:
    """A sampling that is named exists, and where there are several one is named."""
    if samplings is None:
        return
    known = ", ".join(f"`{name}`" for name in samplings)
    name = fields.get("sampling")
    if "sampling" not in fields.nodes and len(samplings) > 1:
        context.refuse(fields.node, f"{whose} needs a `sampling`: there are {known}")
    elif name is not None and name not in samplings:
        hint = suggest_name(name, samplings, f"there are {known}")
        context.refuse(fields.at("sampling"), f"there is no sampling `{name}`; {hint}")


def _check_used(
    fields: Fields, criteria: list[Fields], samplings: list[str] | None, context: Context
) -> None:
    if samplings is None or len(samplings) < 2:
        return
    used = {name for one in criteria for name in (one.get("sampling"), *one.get("samplings", ()))}
    for name in samplings:
        if name not in used:
            message = f"no criterion runs over `{name}`: trials that decide nothing are not run"
            context.refuse(fields["samplings"].keys[name], message)


def _grade_runs(grader: GraderSpec, context: Context) -> Criterion | Invalid:
    """Build the criterion that a grader of runs is: reported, without a question."""
    check = grader.build(context)
    if isinstance(check, Invalid):
        return check
    more = grader.fields.given("pass_at", "sampling")
    made: Criterion | Invalid = make_model(
        lambda: Criterion(grader.name or "?", check, report_only=True, **more),
        grader.fields,
        context,
    )
    return made


def _criterion(fields: Fields, context: Context) -> Criterion | Invalid:
    specs = [one for one in fields.values.values() if isinstance(one, CheckSpec)]
    specs += fields.get("postconditions", [])
    graders = fields.get("graders", [])
    checks = [spec.build(context) for spec in (*specs, *graders)]
    keys = setting_keys(Criterion)
    if any(key.name in fields.nodes and key.name not in fields for key in keys):
        return INVALID
    values = {key.field: fields[key.name] for key in keys if key.name in fields}
    asked = sum(name in values and values[name] is not False for name in _QUESTIONS)
    if asked != 1 and (asked or not values.get("report_only")):
        return INVALID
    if graders and all(one is not INVALID for one in checks):
        # Beside graders a plain check counts as one of them.
        values["weights"] = (*(1.0 for _ in specs), *(one.weight for one in graders))
    # Whatever is wrong with its postconditions, what is wrong with its numbers is said, too.
    sound = [check for check in checks if check is not INVALID] or [_passes]
    criterion = make_model(
        lambda: Criterion(fields.get("name", "?"), sound, **values), fields, context
    )
    return criterion if fields.sound and INVALID not in checks else INVALID


def _passes(reply: object) -> bool:
    """Stands in for postconditions that were refused; never run."""
    return reply is not None
