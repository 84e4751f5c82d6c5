"""A `mavai-contract/1` file, read and checked as a whole by the rules that its format states."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from trialwise.contrib.importers.mavai.check_forms import (
    DIRECT,
    Check,
    read_check,
    read_direct,
    resolve_check,
)
from trialwise.contrib.importers.mavai.contract_inputs import Given, read_inputs
from trialwise.contrib.importers.mavai.file_roots import Roots
from trialwise.contrib.importers.yaml_mappings import Keys
from trialwise.declarations.written import Node
from trialwise.declarations.written import show_value as shown
from trialwise.suite.suite_problems import Problems

__all__ = [
    "CONTRACT_FORMAT",
    "PERCENTILES",
    "ContractRead",
    "CriterionRead",
    "LatencyRead",
    "read_contract",
]

CONTRACT_FORMAT = "mavai-contract/1"
PERCENTILES = ("p50", "p90", "p95", "p99")
_ORIGINS = ("sla", "slo", "policy")
_PERCENTAGE = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?%")
_SEAM = "is reserved for a later version of the format"
_SIZE = "was removed from contracts: the number of samples is given when a test is run"
_GONE = {
    "facets": _SEAM,
    "covariates": _SEAM,
    "budget": _SEAM,
    "kind": "was removed from contracts: what is done with it is said when it is run",
    "samples": _SIZE,
    "samples-per-config": _SIZE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionRead:
    """A criterion of a contract."""

    name: str
    checks: tuple[Check, ...]
    threshold: float | None
    """None: held against a measured baseline."""
    tolerate: float | None
    confidence: float | None
    origin: str | None
    ref: str | None
    slack: int | str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyRead:
    """How long passing replies may take."""

    limits_ms: Mapping[str, int]
    empirical: tuple[str, ...]
    confidence: float | None
    origin: str | None
    ref: str | None
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractRead:
    """Everything that a contract file says."""

    name: str
    service: str
    service_node: Node
    views: Mapping[str, str]
    criteria: tuple[CriterionRead, ...]
    inputs: tuple[Given, ...]
    is_smoke: bool
    confidence: float
    latency: LatencyRead | None


def read_contract(
    root: Node, folder: Path, environment: Mapping[str, str], problems: Problems
) -> ContractRead:
    """A contract, as far as it is sound.

    Args:
        root: The file's.
        folder: Where the file is.
        environment: Where `MAVAI_ROOT_<NAME>` may stand for a root.
        problems: Where to say what is wrong.
    """
    keys = Keys(
        root,
        problems,
        what="a contract",
        known=(
            *("format", "contract", "service", "roots", "transforms", "criteria", "inputs"),
            *("intent", "confidence", "latency"),
        ),
        required=("format", "contract", "service", "criteria", "inputs"),
        gone=_GONE,
    )
    if "format" in keys and keys.at("format").value != CONTRACT_FORMAT:
        message = f"`format` must be {CONTRACT_FORMAT}, got {shown(keys.at('format'))}"
        keys.refuse("format", message)
    views = _views(keys)
    roots = Roots(keys.at("roots") if "roots" in keys else None, folder, environment, problems)
    criteria = [
        _criterion(number, node, views, problems)
        for number, node in enumerate(keys.items("criteria", "a list of at least one criterion"), 1)
    ]
    _check_names(criteria, keys)
    inputs = read_inputs(keys, views, roots, problems)
    roots.check_used()
    inputs = _resolve_inputs(inputs, criteria, views, problems)
    return ContractRead(
        name=keys.text("contract", "the contract's name") or "?",
        service=keys.text("service", "the name of a service") or "?",
        service_node=keys.at("service"),
        views=views,
        criteria=tuple(criteria),
        inputs=tuple(inputs),
        is_smoke=keys.choice("intent", "verification", "smoke") == "smoke",
        confidence=keys.number("confidence", 0, 1, open_ends=True) or 0.95,
        latency=_latency(keys, problems),
    )


def _views(keys: Keys) -> dict[str, str]:
    if "transforms" not in keys:
        return {}
    block = keys.at("transforms")
    if not block.is_mapping or not block.entries:
        keys.refuse("transforms", "`transforms` must map at least one name to a transformation")
        return {}
    views: dict[str, str] = {}
    for name, (key, value) in block.entries.items():
        if name == "raw":
            keys.problems.add(key, "`raw` is the reply as it is, and cannot be declared as a view")
        elif not isinstance(value.value, str) or not value.value:
            message = f"the view `{name}` must name a transformation, got {shown(value)}"
            keys.problems.add(value, message)
        else:
            views[name] = value.value
    return views


def _criterion(
    number: int, node: Node, views: Mapping[str, str], problems: Problems
) -> CriterionRead:
    misplaced = "does not belong on a criterion, but on one of its `postconditions`"
    keys = Keys(
        node,
        problems,
        what="a criterion",
        known=(
            *("name", "threshold", "tolerate", "confidence", "threshold-origin", "contract-ref"),
            *("optional-slack", "postconditions", *DIRECT),
        ),
        gone=dict.fromkeys(("in", "path", "optional", "transform"), misplaced),
    )
    checks = read_direct(keys, views)
    for one in keys.items("postconditions", "a list of at least one check"):
        check = read_check(one, problems, views=views, what="a check")
        checks += [] if check is None else [check]
    if keys.is_mapping and not any(name in keys for name in ("postconditions", *DIRECT)):
        problems.add(node, "a criterion needs a check of its own: a form, or `postconditions`")
    anchor = _anchor(checks, views)
    first = checks[0].form if checks else "criterion"
    threshold = keys.number("threshold", 0, 1, open_ends=True)
    for key in ("tolerate", "confidence"):
        if key in keys and "threshold" in keys:
            keys.refuse(key, f"`{key}` goes with a measured baseline, not beside `threshold`")
    return CriterionRead(
        name=keys.text("name") or f"criterion-{number}-{first}",
        checks=tuple(resolve_check(one, anchor, views, problems) for one in checks),
        threshold=threshold,
        tolerate=keys.number("tolerate", 0, 1, open_ends=True),
        confidence=keys.number("confidence", 0, 1, open_ends=True),
        origin=keys.choice("threshold-origin", *_ORIGINS),
        ref=keys.text("contract-ref"),
        slack=_slack(keys),
        line=keys.line(),
    )


def _anchor(checks: list[Check], views: Mapping[str, str]) -> str | None:
    """The view that a path without `in` means."""
    parsed = [str(one.operand) for one in checks if one.form == "parses"]
    if len(parsed) == 1:
        return parsed[0]
    return next(iter(views)) if len(views) == 1 else None


def _slack(keys: Keys) -> int | str:
    if "optional-slack" not in keys:
        return 0
    value = keys.at("optional-slack").value
    if type(value) is int and value >= 0:
        return value
    if isinstance(value, str) and _PERCENTAGE.fullmatch(value):
        return value
    keys.refuse(
        "optional-slack",
        "`optional-slack` must be a whole number of at least 0, or a percentage such as 20%, got "
        f"{shown(keys.at('optional-slack'))}",
    )
    return 0


def _check_names(criteria: list[CriterionRead], keys: Keys) -> None:
    names = [one.name for one in criteria]
    for name in sorted({one for one in names if names.count(one) > 1}):
        keys.refuse("criteria", f"two criteria are called `{name}`")


def _resolve_inputs(
    inputs: list[Given], criteria: list[CriterionRead], views: Mapping[str, str], problems: Problems
) -> list[Given]:
    from dataclasses import replace

    expecting = [one for one in inputs if one.expected]
    if not expecting:
        return inputs
    if len(criteria) > 1:
        for one in expecting:
            message = "`expected` needs exactly one criterion: with several it would belong to none"
            problems.add(one.node, message)
        return inputs
    anchor = _anchor(list(criteria[0].checks), views) if criteria else None
    return [
        replace(
            one,
            expected=tuple(resolve_check(check, anchor, views, problems) for check in one.expected),
        )
        for one in inputs
    ]


def _latency(top: Keys, problems: Problems) -> LatencyRead | None:
    if "latency" not in top:
        return None
    keys = Keys(
        top.at("latency"),
        problems,
        what="`latency`",
        known=(*PERCENTILES, "empirical", "confidence", "threshold-origin", "contract-ref"),
    )
    limits = {one: keys.whole(one, 1, 10**9) for one in PERCENTILES if one in keys}
    given = [(name, limit) for name, limit in limits.items() if limit is not None]
    for (low, less), (high, more) in pairwise(given):
        if more < less:
            keys.refuse(high, f"`{high}` must not be below `{low}`, got {more} ms after {less} ms")
    empirical = [
        _percentile(node, problems) for node in keys.items("empirical", "a list of percentiles")
    ]
    named = [one for one in empirical if one is not None]
    if len(set(named)) < len(named):
        keys.refuse("empirical", "`empirical` names each percentile once")
    if limits and "empirical" in keys:
        keys.refuse("empirical", "`empirical` and own limits exclude one another")
    if keys.is_mapping and not limits and "empirical" not in keys:
        problems.add(keys.node, "`latency` needs a limit such as `p95: 500`, or `empirical`")
    return LatencyRead(
        limits_ms=dict(given),
        empirical=tuple(sorted(named)),
        confidence=keys.number("confidence", 0, 1, open_ends=True),
        origin=keys.choice("threshold-origin", *_ORIGINS),
        ref=keys.text("contract-ref"),
        line=keys.line(),
    )


def _percentile(node: Node, problems: Problems) -> str | None:
    if node.value in PERCENTILES:
        return str(node.value)
    problems.add(node, f"a percentile is one of {', '.join(PERCENTILES)}, got {shown(node)}")
    return None
