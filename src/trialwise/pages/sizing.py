"""The page of each sizing question."""

from __future__ import annotations

from typing import assert_never

from trialwise.documents.blocks import Document
from trialwise.pages.sizing_differences import build_comparison_page, build_regression_page
from trialwise.pages.sizing_fixed import build_compliance_page, build_precision_page
from trialwise.pages.sizing_latency import build_latency_page
from trialwise.pages.sizing_sequential import build_sequential_page
from trialwise.procedures.sizing.sizing_plans import (
    ComparePlan,
    CompliancePlan,
    LatencyPlan,
    Plan,
    PrecisionPlan,
    RegressionPlan,
    SequentialPlan,
)


def build_sizing_page(plan: Plan) -> Document:
    """The answer to a sizing question as a page of words, tables and charts."""
    match plan:
        case SequentialPlan():
            return build_sequential_page(plan)
        case CompliancePlan():
            return build_compliance_page(plan)
        case RegressionPlan():
            return build_regression_page(plan)
        case LatencyPlan():
            return build_latency_page(plan)
        case PrecisionPlan():
            return build_precision_page(plan)
        case ComparePlan():
            return build_comparison_page(plan)
        case _:
            assert_never(plan)
