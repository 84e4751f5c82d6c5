"""Which plan it is: a hash that two plans share exactly if their trials may be pooled."""

from __future__ import annotations

from typing import Any

from trialwise.model.codec import to_plain
from trialwise.model.fingerprint import fingerprint
from trialwise.model.plain_forms import excerpt
from trialwise.model.plan import Plan

#: What of the options is not resolved elsewhere in the plan and can change an outcome.
_DECISIVE_OPTIONS = ("abort", "retries", "timeout_s")
#: Words for people, and the place of a file.
_WORDING = (
    ("claim", "representativeness"),
    ("experiments", "description"),
    # It follows from the inputs, whose fingerprint counts.
    ("experiments", "copies"),
    ("criteria", "caveats"),
    ("criteria", "category"),
    ("criteria", "categorical"),
    ("criteria", "discharged_by"),
    # It follows from what else is kept in the store.
    ("criteria", "together"),
    # It follows from the design, and earlier versions did not write it.
    ("criteria", "stops_early"),
    ("criteria", "threshold", "contract_ref"),
    ("criteria", "threshold", "context"),
    ("criteria", "threshold", "baseline", "file"),
    # They follow from the baseline, which is known by its name and counts.
    ("criteria", "threshold", "baseline", "days_left"),
    ("criteria", "threshold", "baseline", "inputs"),
    ("criteria", "threshold", "baseline", "repetitions"),
)
#: Fields that came later, and what they are where a plan makes no use of them.
_LATER_FIELDS: tuple[tuple[str, str, object], ...] = (
    ("criteria", "asks_every_input", False),
    ("criteria", "counts_every_trial", False),
    ("criteria", "analysis", None),
    ("criteria", "most_failing", None),
    ("criteria", "fail_alpha", None),
    ("criteria", "uncorrected", None),
    ("criteria", "family", None),
    ("criteria", "shared_by", 1),
    ("criteria", "corrected_by", []),
    ("criteria", "reported_at", None),
    ("criteria", "intent", None),
    ("criteria", "pass_at", None),
    ("criteria", "graders", []),
    ("criteria", "looks", []),
    ("criteria", "withdrawn_by", None),
    ("experiments", "further", 0),
    ("experiments", "clusters", []),
)
#: Values of these types are written in one way only.
_SETTLED = frozenset({str, int, bool, type(None)})
_LABELS = {"experiments": "inputs", "structure": "postconditions", "factors": "what is under test"}


def plan_hash(plan: Plan) -> str:
    """Sixteen characters that two plans share exactly if their trials may be pooled.

    Counted is all that determines trials and decisions: the inputs and their order, the criteria
    and their postconditions, seed, claim, rule, intent, analysis, latency limits, and of the
    options timeout, retries and the abort rule. So are the factors and covariates: trials under
    other conditions are trials of something else. Not counted are pace (concurrency, rate),
    budgets, overrides, the horizon and wording: a run may go on slower, longer or better
    described.
    """
    return hash_plain_plan(to_plain(plan))


def hash_plain_plan(plain: dict[str, Any]) -> str:
    """The hash of a plan as a record holds it, by whichever version it was written."""
    return fingerprint(_decisive(plain))


def plan_differences(kept: Plan, given: Plan) -> tuple[str, ...]:
    """What makes the hashes of two plans differ, each with the first place where it does."""
    one, other = _decisive(to_plain(kept)), _decisive(to_plain(given))
    changed = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    return tuple(
        f"{_LABELS.get(name, name)} ({_first_change(name, one.get(name), other.get(name))})"
        for name in changed
    )


def _decisive(whole: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = _settled(whole)  # a copy of every part
    del plain["guards"]
    if not plain["gates"]:
        # A plan without them is known by what it was known by before there were any.
        del plain["gates"]
    for gate in plain.get("gates", ()):
        if not gate.get("samplings"):
            gate.pop("samplings", None)
    if plain.get("correction", "none") == "none":
        for name in ("correction", "family_size"):
            plain.pop(name, None)
    for part, name, usual in _LATER_FIELDS:
        for one in plain[part]:
            # The same holds of a field that earlier plans did not have.
            if one.get(name, usual) == usual:
                one.pop(name, None)
    for one in plain["criteria"]:
        if isinstance(one["design"], dict):
            _drop_unused(one["design"])
    options = plain.pop("options")
    if not options["abort"].get("exit_codes"):
        options["abort"].pop("exit_codes", None)
    for path in _WORDING:
        _drop(plain, *path)
    plain["options"] = {name: options[name] for name in _DECISIVE_OPTIONS}
    return plain


def _drop_unused(design: dict[str, Any]) -> None:
    """Leave out what the designs of earlier plans did not have, where this one does not use it."""
    later: tuple[str, ...] = ("futile",)
    if design["type"] == "RegressionCutoff":
        later += ("alternative_rate", "accept", "reject", "scheme")
    for name in later:
        if not design.get(name):
            design.pop(name, None)
    if isinstance(scheme := design.get("scheme"), dict) and not scheme.get("waits"):
        scheme.pop("waits", None)


def _drop(part: Any, name: str, *inner: str) -> None:
    if isinstance(part, list):
        for one in part:
            _drop(one, name, *inner)
    elif isinstance(part, dict) and inner:
        _drop(part[name], *inner)
    elif isinstance(part, dict):
        part.pop(name, None)


def _settled(part: Any) -> Any:
    """Equal plans have equal hashes: 30 and 30.0 are one number."""
    if isinstance(part, dict):
        return {k: one if type(one) in _SETTLED else _settled(one) for k, one in part.items()}
    if isinstance(part, list):
        return [one if type(one) in _SETTLED else _settled(one) for one in part]
    return int(part) if isinstance(part, float) and part.is_integer() else part


def _first_change(place: str, one: Any, other: Any) -> str:
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        name = next(name for name in one if one[name] != other[name])
        return _first_change(f"{place}.{name}", one[name], other[name])
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        at = next(at for at, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1])
        return _first_change(f"{place}[{at}]", one[at], other[at])
    return f"{place}: {excerpt(one)} there, {excerpt(other)} here"
