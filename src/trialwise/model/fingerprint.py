"""Fingerprints of contents and of plans, and the plans that earlier versions wrote.

Sixteen characters that change when what they stand for does.

Apart from the nouns because a fingerprint must never fail and never drift: not on an object of the
user's that cannot be written down, not with the order of a mapping, and not with an address in
memory.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import sha256
from typing import Any, TypeAlias

from trialwise.model.claim import Input, Sampling
from trialwise.model.codec import from_plain, to_plain
from trialwise.model.plain_json import excerpt
from trialwise.model.plan import Plan

#: 64 bits: two of a project's contents never meet by chance, and a person can compare them.
_LENGTH = 16
#: Deeper parts are told apart by their `repr` only; JSON documents are not nested so far.
_DEEPEST = 60
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_LARGEST = 2**63

Describe: TypeAlias = Callable[[object], object]


def fingerprint(value: object, *, describe: Describe | None = None) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of a value's canonical text.

    >>> fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    True
    """
    return sha256(canonical(value, describe=describe).encode("ascii")).hexdigest()[:_LENGTH]


def canonical(value: object, *, describe: Describe | None = None) -> str:
    """Return a value as JSON with sorted keys; other values are told apart as well as possible.

    Bytes stand for themselves by a hash, sets are sorted, dataclasses and objects without a `repr`
    of their own are their fields, anything else is its `repr` without addresses. It never raises.

    Args:
        value: Anything.
        describe: Asked first about what JSON cannot hold; it returns a value to write instead, or
            None.

    >>> canonical({"b": (1, 2.5), "a": {3}})
    '{"a":{"$set":[3]},"b":[1,2.5]}'
    """
    return _text(_plain(value, describe, ()))


def sampling_fingerprint(sampling: Sampling) -> str:
    """Return the fingerprint of the inputs' contents, whatever their order and the sampling's name.

    An expected answer does: held to another one, the same input is another trial.

    >>> one = Sampling.of(["What is 15 * 37?"])
    >>> sampling_fingerprint(one) == sampling_fingerprint(Sampling.of(["What is 15 * 38?"]))
    False
    """
    # The order of a list changes which trial asks what, and not what is asked.
    inputs = sorted(sampling.inputs, key=lambda one: one.id)
    return fingerprint([_contents(one) for one in inputs])


def _contents(one: Input) -> list[object]:
    # As a float: 1 and 1.0 are spelled apart in JSON, and are one weight.
    contents = [one.id, one.value, one.stratum, one.repetitions, float(one.weight)]
    # Left out where there is none, as it was before there were any.
    if one.cluster is not None:
        return [*contents, one.expected, one.cluster]
    return contents if one.expected is None else [*contents, one.expected]


def _text(plain: object) -> str:
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _plain(value: object, describe: Describe | None, within: tuple[int, ...]) -> Any:
    """Return the value as JSON holds it; `within` are the ids of the containers it lies in."""
    try:
        if value is None or isinstance(value, str | int | float):
            return _scalar(value)
        if id(value) in within:
            return {"$cycle": len(within) - within.index(id(value))}
        if describe is not None and (described := describe(value)) is not None:
            return _plain(described, None, within)
        if len(within) >= _DEEPEST:
            return _show(value)
        inside = (*within, id(value))
        return _compose(value, lambda part: _plain(part, describe, inside))
    except Exception:  # an object of the user's may raise anything from any method
        return {"$type": _type(value)}


def _scalar(value: str | float | None) -> Any:
    if isinstance(value, str):
        return str.__str__(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        # Python refuses to write out numbers of thousands of digits.
        return int(value) if abs(value) < _LARGEST else {"$int": hex(value)}
    return float(value) if math.isfinite(value) else {"$float": repr(float(value))}


def _compose(value: object, plain: Callable[[object], Any]) -> Any:
    if isinstance(value, dict | Mapping):
        # A key that begins like one of our own marks would make two different values alike.
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {str.__str__(key): plain(part) for key, part in value.items()}
        return {"$pairs": _sort([plain(key), plain(part)] for key, part in value.items())}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, set | frozenset):
        return {"$set": _sort(plain(part) for part in value)}
    if isinstance(value, bytes | bytearray):
        return {"$bytes": sha256(value).hexdigest()}
    return _object(value, plain)


def _object(value: object, plain: Callable[[object], Any]) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        parts = {one.name: getattr(value, one.name) for one in fields(value) if one.compare}
        return {"$type": _type(value), "fields": plain(parts)}
    if isinstance(value, Enum):
        return {"$type": _type(value), "name": value.name}
    if (contents := _buffer(value)) is not None:
        return {"$type": _type(value), **contents}
    if type(value).__repr__ is object.__repr__ and hasattr(value, "__dict__"):
        return {"$type": _type(value), "fields": plain(vars(value))}
    return _show(value)


def _buffer(value: object) -> dict[str, object] | None:
    """Return an array, whose `repr` would leave out its middle."""
    try:
        view = memoryview(value)  # type: ignore[arg-type]
    except TypeError:
        return None
    if "O" in view.format:  # addresses of objects, which change from run to run
        return None
    shape = list(view.shape or ())
    return {"format": view.format, "shape": shape, "$bytes": sha256(view.tobytes()).hexdigest()}


def _show(value: object) -> dict[str, str]:
    return {"$type": _type(value), "repr": _ADDRESS.sub("", repr(value))}


def _type(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _sort(parts: Iterable[Any]) -> list[Any]:
    return sorted(parts, key=_text)


# --- Plans and records as they are stored: which plan it is, and what earlier versions wrote ------

#: What of the options is not resolved elsewhere in the plan and can change an outcome.
_DECISIVE_OPTIONS = ("abort", "retries", "timeout_s")
#: Words for people, and the place of a file.
_WORDING = (
    # Which caveats of a baseline were admitted changes no trial and no rule.
    ("guards",),
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
    ("gates", "samplings", []),
)
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
    if plain.get("correction", "none") == "none":
        for name in ("correction", "family_size"):
            plain.pop(name, None)
    for part, name, usual in _LATER_FIELDS:
        for one in plain[part]:
            # The same holds of a field that earlier plans did not have.
            if one.get(name, usual) == usual:
                one.pop(name, None)
    if not plain["gates"]:
        # A plan without them is known by what it was known by before there were any.
        del plain["gates"]
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
        return {name: _settled(one) for name, one in part.items()}
    if isinstance(part, list):
        return [_settled(one) for one in part]
    return int(part) if isinstance(part, float) and part.is_integer() else part


def _first_change(place: str, one: Any, other: Any) -> str:
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        name = next(name for name in one if one[name] != other[name])
        return _first_change(f"{place}.{name}", one[name], other[name])
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        at = next(at for at, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1])
        return _first_change(f"{place}[{at}]", one[at], other[at])
    return f"{place}: {excerpt(one)} there, {excerpt(other)} here"


# --- Records of earlier versions, brought to the form that this version reads ---------------------
#
# Format 1 (0.1.0) kept in every finding what its plan says, and in the verdict what the run's plan
# says. Format 2 keeps the plan once. What was the rule set "exact" then is "fisher" now.
# One function upgrades a plan, one a record; both take and return
# plain JSON, so that nothing else has to know that there was another format.

#: What a verdict of format 1 repeated from its plan.
_REPEATED = (
    *("contract", "intent", "analysis", "claim", "guards", "covariates", "factors"),
    *("horizon", "caveats"),
)
_WORDS = ("statement", "advice", "label", "null", "alternative", "confidence_statement")
_KEPT = (
    *("decision", "tally", "observed_rate", "caution", "stop", "refusals", "diagnostics"),
    "input_id",
)
_COUNTS = ("intent_to_treat", "per_protocol", "breakdown")
_SHARED = ("judged", "judged_otherwise", "containment", "containment_strata", "residual")
#: Format 1 kept only the text of a note; this is how the text of each kind began.
_NOTE_KINDS = (
    ("Corrected for the judge's errors", "correction"),
    ("The judged rate cannot be corrected", "correction"),
    ("Red-team inputs", "guardrail"),
    ("A bound on", "guardrail"),
)


def upgrade_plan_record(kept: dict[str, Any]) -> dict[str, Any]:
    """Bring the content of a `plan.json` of format 1 to format 2."""
    plan = _upgrade_plan(_rename_rules(kept["plan"]))
    return kept | {"plan": plan, "plan_hash": _upgrade_hash(kept, plan)}


def upgrade_run_record(kept: dict[str, Any]) -> dict[str, Any]:
    """Bring the content of a `record.json` of format 1 to format 2."""
    plan = _upgrade_plan(_rename_rules(kept["plan"]))
    verdict: dict[str, Any] = dict(_rename_rules(kept["verdict"]))
    new_hash = _upgrade_hash(kept, plan)
    criteria = {one["criterion"]: one for one in plan["criteria"]}
    verdict["findings"] = [
        _upgrade_finding(one, criteria[one["criterion"]]) for one in verdict["findings"]
    ]
    known = dict(verdict["reproducibility"])
    if known["plan_hash"] == kept["plan_hash"]:
        known["plan_hash"] = new_hash
    for name in _REPEATED:
        del verdict[name]
    upgraded = {key: part for key, part in kept.items() if key != "plan"}
    verdict |= {"plan": plan, "reproducibility": known}
    return upgraded | {"plan_hash": new_hash, "verdict": verdict}


def _rename_rules(plain: Any) -> Any:
    """Name the rule set of Fisher's test by its present name, wherever a rule is kept."""
    if isinstance(plain, list):
        return [_rename_rules(one) for one in plain]
    if not isinstance(plain, dict):
        return plain
    renamed = {key: _rename_rules(part) for key, part in plain.items()}
    return renamed | {"rule": "fisher"} if renamed.get("rule") == "exact" else renamed


def _upgrade_hash(kept: dict[str, Any], plan: dict[str, Any]) -> str:
    """Return the hash of the upgraded plan, if the stored hash is that of the stored plan.

    A plan that was changed by hand keeps the hash that gives it away.
    """
    stored: str = kept["plan_hash"]
    return plan_hash(from_plain(Plan, plan)) if hash_plain_plan(kept["plan"]) == stored else stored


def _upgrade_plan(plan: dict[str, Any]) -> dict[str, Any]:
    estimand = plan["claim"]["estimand"]
    return plan | {"criteria": [_upgrade_criterion(one, estimand) for one in plan["criteria"]]}


def _upgrade_criterion(criterion: dict[str, Any], estimand: str) -> dict[str, Any]:
    """Name the procedure and the rule by what really decides."""
    rule, estimator = criterion["decision_rule"] or "", criterion["estimator"]
    if rule.startswith(("finite-corpus/", "no-generalisation/")):
        return criterion | {"procedure": "CORPUS", "rule": None}
    if criterion["procedure"] == "COMPLIANCE" and estimator is not None:
        decided_by = f"compliance/{estimator}/{estimand}"
        changed = {"rule": None, "decision_rule": decided_by, "cutoff": None, "design": None}
        return criterion | changed
    if criterion["procedure"] != "SEQUENTIAL":
        return criterion
    if criterion["errors"] is None:
        return criterion | {"stops_early": True}
    return criterion | {"design": None, "decision_rule": "judged/corrected-interval"}


def _upgrade_finding(finding: dict[str, Any], plan: dict[str, Any]) -> dict[str, Any]:
    whole = finding["by_input"]
    counts = {name: finding[name] for name in _COUNTS}
    return {
        "criterion": finding["criterion"],
        **{name: finding[name] for name in _KEPT},
        "evidence": {"type": "Evidence"} if whole else _upgrade_evidence(finding, plan),
        "words": {name: finding[name] for name in _WORDS},
        "notes": list(_upgrade_notes(finding, plan)),
        "counts": None if None in counts.values() else counts,
        "by_input": [_upgrade_finding(part, plan) for part in whole],
    }


def _upgrade_evidence(finding: dict[str, Any], plan: dict[str, Any]) -> dict[str, Any]:
    shared = {name: _rename_boxes(finding[name]) for name in _SHARED}
    if plan["procedure"] == "OBSERVATIONAL" or plan["decision_rule"] == "judged/corrected-interval":
        return {"type": "Evidence", **shared}
    if plan["procedure"] == "SEQUENTIAL":
        own = {name: finding[name] for name in ("interval", "estimate", "power")}
        return {"type": "SequentialEvidence", **own, **shared}
    if finding["estimator"] is not None:
        names = ("estimator", "estimate", "lower_bound", "interval")
        return {"type": "EstimatedEvidence", **{name: finding[name] for name in names}, **shared}
    own = {name: finding[name] for name in ("p_value", "lower_bound", "interval", "power")}
    own["design"] = None if finding["design"] == plan["design"] else finding["design"]
    if plan["estimator"] is not None:
        # The plain interval and cutoff that stood here were not the estimator's.
        own |= {"interval": None, "design": None}
    return {"type": "CutoffEvidence", **own, **shared}


def _rename_boxes(judged: Any) -> Any:
    """Return a corrected rate with the present name of its method: "exact" now means tests."""
    corrected = judged.get("corrected") if isinstance(judged, dict) else None
    if not isinstance(corrected, dict) or corrected.get("method") != "exact":
        return judged
    interval = corrected["interval"] | {"method": "boxes"}
    return judged | {"corrected": corrected | {"method": "boxes", "interval": interval}}


def _upgrade_notes(finding: dict[str, Any], plan: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Yield those that the plan does not have: they stood after the plan's own."""
    planned = len(plan["advisory"]) + len(plan["caveats"])
    for text in finding["caveats"][planned:]:
        yield {"kind": _kind_of(text), "text": text}


def _kind_of(text: str) -> str:
    if "needed a retry after an infrastructure error" in text:
        return "retries"
    if "got no verdict from the judge and" in text:
        return "silence"
    return next((kind for start, kind in _NOTE_KINDS if text.startswith(start)), "qualification")
