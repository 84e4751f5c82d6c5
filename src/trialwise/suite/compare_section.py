"""The section `compare` of a suite: what a comparison asks where the command line does not say."""

from __future__ import annotations

from typing import Any

from trialwise.declarations.structures import Fields
from trialwise.suite.contract_parts import names_of
from trialwise.suite.loaded_suite import CompareSection
from trialwise.suite.reading_context import Context
from trialwise.suite.suite_judges import build_preference

#: Questions that mean nothing without a margin.
_NEED_MARGIN = ("not-worse", "equivalent")


def build_compare(fields: Any, context: Context) -> CompareSection:
    """Build the section; an empty one where the suite has none or a problem was reported."""
    if not isinstance(fields, Fields):
        return CompareSection()
    question = fields.get("question")
    if question in _NEED_MARGIN and "margin" not in fields.nodes:
        message = f"`question: {question}` needs a `margin`, such as `margin: 2%`"
        context.refuse(fields.at("question"), message)
    if question == "different" and "margin" in fields.nodes:
        message = "a `margin` belongs to `question: better`, `not-worse` or `equivalent`"
        context.refuse(fields.keys["margin"], message)
    if "trials" in fields.nodes and "max_trials" in fields.nodes:
        context.refuse(fields.keys["max_trials"], "`trials` fixes the number of pairs: keep one")
    guardrails = fields.get("guardrails")
    expected = fields.get("expect")
    return CompareSection(
        candidates=names_of(fields, "candidates"),
        guardrails=dict(guardrails.values) if isinstance(guardrails, Fields) else {},
        expect=tuple(expected) if expected is not None and len(expected) == 2 else None,
        preference=build_preference(fields.get("preference"), context),
        **fields.given("control", "question", "margin", "trials", "max_trials"),
        **fields.given("confidence", "correction", "all_pairs"),
    )
