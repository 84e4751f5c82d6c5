"""The page of each sizing question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trialwise.documents.blocks import Document
from trialwise.pages.sizing_differences import build_comparison_page, build_regression_page
from trialwise.pages.sizing_fixed import build_compliance_page, build_precision_page
from trialwise.pages.sizing_latency import build_latency_page
from trialwise.pages.sizing_pairs import build_pairs_page
from trialwise.pages.sizing_sequential import (
    build_sequential_page,
    build_short_sequential_page,
)
from trialwise.procedures.sizing.sizing_base import SizingPlan

#: By the form of the plan.
_BUILDERS: dict[str, Callable[[Any], Document]] = {
    "rate": build_sequential_page,
    "compliance": build_compliance_page,
    "regression": build_regression_page,
    "latency": build_latency_page,
    "precision": build_precision_page,
    "compare": build_comparison_page,
    "pairs": build_pairs_page,
}


#: Those that also have a short page.
_SHORT: dict[str, Callable[[Any], Document]] = {"rate": build_short_sequential_page}


def build_sizing_page(plan: SizingPlan, *, short: bool = False) -> Document:
    """Build the answer to a sizing question as a page of words, tables and charts.

    Args:
        plan: The answer.
        short: Whether its first table is enough, where it has several.
    """
    builders = _BUILDERS | _SHORT if short else _BUILDERS
    return builders[plan.form](plan)
