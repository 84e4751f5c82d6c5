"""Records of earlier versions, brought to the form that this version reads.

Format 1 (0.1.0) kept in every finding what its plan says, and in the verdict what the run's plan
says. Format 2 keeps the plan once. What was the rule set "exact" then is "fisher" now.
One function upgrades a plan, one a record; both take and return
plain JSON, so that nothing else has to know that there was another format.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trialwise.model.codec import from_plain
from trialwise.model.plan import Plan
from trialwise.model.plan_hashes import hash_plain_plan, plan_hash

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
