"""Which words go with which plan."""

from __future__ import annotations

from typing import assert_never

from trialwise.procedures.sizing.sizing_plans import (
    ComparePlan,
    CompliancePlan,
    LatencyPlan,
    Plan,
    PrecisionPlan,
    RegressionPlan,
    SequentialPlan,
)
from trialwise.reporters.plan.compare import compare_page
from trialwise.reporters.plan.fixed import compliance_page, precision_page
from trialwise.reporters.plan.latency import latency_page
from trialwise.reporters.plan.page import Page
from trialwise.reporters.plan.regression import regression_page
from trialwise.reporters.plan.sequential import sequential_page

__all__ = ["page_of"]


def page_of(plan: Plan) -> Page:
    """A plan as a page of words, tables and charts."""
    match plan:
        case SequentialPlan():
            return sequential_page(plan)
        case CompliancePlan():
            return compliance_page(plan)
        case RegressionPlan():
            return regression_page(plan)
        case LatencyPlan():
            return latency_page(plan)
        case PrecisionPlan():
            return precision_page(plan)
        case ComparePlan():
            return compare_page(plan)
        case _:
            assert_never(plan)
