"""How many trials do I need? Every question of `trialwise plan` as a function.

>>> answer = plan_compliance(0.9)
>>> answer.is_refused
False
"""

from __future__ import annotations

from trialwise.runtime.trial_sizing import (
    SizingAnswer,
    plan,
    plan_compare,
    plan_compliance,
    plan_latency,
    plan_pairs,
    plan_precision,
    plan_regression,
)

__all__ = [
    "SizingAnswer",
    "plan",
    "plan_compare",
    "plan_compliance",
    "plan_latency",
    "plan_pairs",
    "plan_precision",
    "plan_regression",
]
