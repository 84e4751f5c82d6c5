"""Sequential designs for a rate: as few trials as two exact errors allow.

`SequentialDesign` is the way in. A name loads its module on first use, so importing this package
imports none of them; type checkers read `__init__.pyi`, and a test holds the two together.
"""

from __future__ import annotations

from trialwise.lazy_exports import lazy_names

#: Where each public name lives.
_MODULES = {
    "bound": "FixedSize Shortfall expected_trials_bound fixed_size shortfall",
    "catalogue": "DesignCache design_key",
    "characteristic": "OperatingCharacteristic",
    "concurrency": (
        "RoundCharacteristic Standing chance_needed round_characteristic standing trials_to_start"
    ),
    "design": "Decision Method Mix SequentialDesign",
    "hypotheses": "default_alternative",
    "stopped_rates": "estimate_bias naive_bias naive_interval stopped_estimate stopped_interval",
    "trial_order": "Draw issue_order",
    "trialwise.stats.toolbox.adaptive_sampling": (
        "AdaptiveCharacteristic AdaptiveDesign adaptive_design"
    ),
}
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)
