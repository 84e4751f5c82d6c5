"""Explorations and optimisations of a services file: checked as the format says, then left out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trialwise.contrib.importers.yaml_mappings import Keys
from trialwise.declarations.written import Node
from trialwise.declarations.written import show_value as shown
from trialwise.suite.suite_problems import Problems

if TYPE_CHECKING:
    from trialwise.contrib.importers.mavai.services_file import _Definition

__all__ = ["check_explorations", "check_optimizations"]

_ID = re.compile(r"[A-Za-z0-9._-]+")
_KEYS = (
    *("id", "stepper", "stepper-config", "scorer", "objective", "max-iterations"),
    *("no-improvement-window", "initial"),
)
#: The built-in steppers of baseltest: what each needs, and what else it takes.
_STEPPERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "prompt-engineer": (
        (),
        ("provider", "model", "temperature", "system-prompt", "target-key", "max-exemplars"),
    ),
    "linear-sweep": (("key", "step", "stop"), ()),
    "refining-grid": (
        ("key", "lo", "hi", "step", "min-step"),
        ("confidence", "min-improvement", "confirmation-epochs", "prefer"),
    ),
}
_SCORERS = ("pass-rate",)


def check_explorations(
    name: str,
    baseline: Mapping[str, Any],
    nodes: list[Node],
    points: list[dict[str, Any]],
    problems: Problems,
) -> None:
    """Each is another point, and none says nothing.

    Args:
        name: The service's.
        baseline: Its configuration, with what holds where that does not say.
        nodes: The explorations.
        points: What each replaces.
        problems: Where to say what is wrong.
    """
    seen = {_point(baseline): "the configuration itself"}
    for number, (node, point) in enumerate(zip(nodes, points, strict=True), start=1):
        if not point:
            continue
        key = _point({**baseline, **point})
        if key in seen:
            problems.add(node, f"an exploration of `{name}` is the same as {seen[key]}")
        seen.setdefault(key, f"exploration {number}")


def _point(configuration: Mapping[str, Any]) -> str:
    import json

    return json.dumps(configuration, sort_keys=True, default=str)


def check_optimizations(
    definition: _Definition, top: Keys, kind: str, baseline: Mapping[str, Any]
) -> None:
    """Each names itself, its stepper and its end.

    Args:
        definition: The service's.
        top: Its keys.
        kind: Its type.
        baseline: Its configuration.
    """
    nodes = top.items("optimizations", "a list of at least one optimisation")
    ids: list[str] = []
    for node in nodes:
        keys = Keys(
            node,
            definition.problems,
            what="an optimisation",
            known=_KEYS,
            required=("stepper", "max-iterations"),
        )
        if not keys.is_mapping:
            continue
        _check_id(keys, ids, is_needed=len(nodes) > 1)
        initial = _initial(definition, keys, kind, baseline)
        _check_stepper(definition, keys, {**baseline, **initial})
        scorer = keys.text("scorer", "the name of a scorer")
        if scorer is not None and scorer not in (*_SCORERS, *definition.bindings.scorers):
            keys.refuse("scorer", f"there is no scorer `{scorer}`; known is {_SCORERS[0]}")
        keys.choice("objective", "maximize", "minimize")
        keys.whole("max-iterations", 1)
        keys.whole("no-improvement-window", 1)


def _check_id(keys: Keys, ids: list[str], *, is_needed: bool) -> None:
    name = keys.text("id", "letters, digits, dots, underscores and hyphens")
    if name is None:
        if is_needed and "id" not in keys:
            keys.problems.add(keys.node, "an optimisation needs `id` where there are several")
    elif not _ID.fullmatch(name):
        message = "`id` must be made of letters, digits, dots, underscores and hyphens"
        keys.refuse("id", f"{message}, got {shown(keys.at('id'))}")
    elif name in ids:
        keys.refuse("id", f"two optimisations have the `id` {name}")
    ids.append(name or "")


def _initial(
    definition: _Definition, keys: Keys, kind: str, baseline: Mapping[str, Any]
) -> dict[str, Any]:
    if "initial" not in keys:
        return {}
    before = len(definition.problems)
    point = definition.replacement(keys.at("initial"), kind)
    if len(definition.problems) == before and {**baseline, **point} == dict(baseline):
        keys.refuse("initial", "`initial` must change something: it restates the configuration")
    return point


def _check_stepper(definition: _Definition, keys: Keys, baseline: Mapping[str, Any]) -> None:
    stepper = keys.text("stepper", "the name of a stepper")
    if stepper is None or stepper in definition.bindings.steppers:
        return
    if stepper not in _STEPPERS:
        keys.refuse("stepper", f"there is no stepper `{stepper}`; known are {', '.join(_STEPPERS)}")
        return
    required, more = _STEPPERS[stepper]
    node = keys.at("stepper-config") if "stepper-config" in keys else None
    if node is None:
        if required:
            keys.problems.add(keys.node, f"`{stepper}` needs `stepper-config`")
        return
    config = Keys(
        node,
        definition.problems,
        what=f"`stepper-config` of `{stepper}`",
        known=(*required, *more),
        required=required,
    )
    target = next((name for name in ("key", "target-key") if name in config), None)
    named = None if target is None else config.at(target)
    if (
        target is not None
        and named is not None
        and not (named.is_scalar and named.value in baseline)
    ):
        config.refuse(target, f"`{target}` must name a parameter that the configuration has")
