"""How many trials do I need? Every question of `trialwise plan` as a function.

>>> from trialwise.planning import plan_compliance
>>> answer = plan_compliance(0.9)
>>> answer.is_refused
False
"""

from __future__ import annotations

from trialwise.lazy_exports import lazy_names

#: Where each public name lives.
_MODULES = {
    "trialwise.runtime.trial_sizing": (
        "SizingAnswer plan plan_compare plan_compliance plan_latency plan_pairs plan_precision "
        "plan_regression"
    )
}
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)
