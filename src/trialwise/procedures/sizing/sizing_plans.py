"""Every form of plan, and a plan as plain values for machines.

A question is built, asked and answered without I/O: questions in, frozen tables out. One module a
form; this one is the way in, so that a reporter need not know where each lives.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeAlias

from trialwise.procedures.sizing.comparison_sizing import ComparePlan, CompareQuestion, plan_compare
from trialwise.procedures.sizing.fixed_sizing import (
    CompliancePlan,
    ComplianceQuestion,
    PrecisionPlan,
    PrecisionQuestion,
    plan_compliance,
    plan_precision,
)
from trialwise.procedures.sizing.latency_sizing import LatencyPlan, LatencyQuestion, plan_latency
from trialwise.procedures.sizing.regression_sizing import (
    RegressionPlan,
    RegressionQuestion,
    plan_regression,
)
from trialwise.procedures.sizing.sequential_sizing import SequentialPlan, plan_sequential
from trialwise.procedures.sizing.sizing_questions import (
    Correction,
    SequentialQuestion,
    resolved_max_trials,
)
from trialwise.procedures.sizing.trial_costs import Prices, Spread
from trialwise.stats.result_types import Undefined
from trialwise.stats.sequential.design import SequentialDesign

__all__ = [
    "SCHEMA",
    "ComparePlan",
    "CompareQuestion",
    "CompliancePlan",
    "ComplianceQuestion",
    "Correction",
    "LatencyPlan",
    "LatencyQuestion",
    "Plan",
    "PrecisionPlan",
    "PrecisionQuestion",
    "Prices",
    "RegressionPlan",
    "RegressionQuestion",
    "SequentialPlan",
    "SequentialQuestion",
    "Spread",
    "plan_compare",
    "plan_compliance",
    "plan_data",
    "plan_latency",
    "plan_precision",
    "plan_regression",
    "plan_sequential",
    "resolved_max_trials",
]

#: Of the JSON that `plan_data` gives; changed when a reader would have to change.
SCHEMA = "trialwise.plan/1"

Plan: TypeAlias = (
    SequentialPlan | CompliancePlan | RegressionPlan | LatencyPlan | PrecisionPlan | ComparePlan
)

_FORMS: dict[type[Plan], str] = {
    SequentialPlan: "rate",
    CompliancePlan: "compliance",
    RegressionPlan: "regression",
    LatencyPlan: "latency",
    PrecisionPlan: "precision",
    ComparePlan: "compare",
}


def plan_data(plan: Plan) -> dict[str, Any]:
    """A plan as plain values, fit for JSON.

    An undefined quantity is `{"undefined": reason}`; a sequential design is in the form that
    `SequentialDesign.from_dict` reads.

    >>> plan_data(plan_latency(LatencyQuestion()))["schema"]
    'trialwise.plan/1'
    """
    return {"schema": SCHEMA, "form": _FORMS[type(plan)], **_plain(plan)}


def _plain(value: Any) -> Any:
    if isinstance(value, Undefined):
        return {"undefined": value.reason}
    if isinstance(value, SequentialDesign):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value]
    return value
