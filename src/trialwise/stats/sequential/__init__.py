"""Sequential designs for a rate: as few trials as two exact errors allow.

- `design`: `SequentialDesign`, the way in
- `design_methods`: the methods that find a design
- `shipped_designs`, `designs.json`, `strict_designs.json`: designs that are shipped or kept
- `walks`: the one walk: boundaries, error rates and expected trials of a rule
- `bound`: the two rates to tell apart, the errors, and what no design can beat
- `stopped_rates`: estimates and intervals after an early stop
- `concurrency`: the order of inputs, and how many trials to start at once
- `best_rules`, `price_search`, `flip_search`: the search

A name loads its module on first use, so importing this package imports none of them. Type checkers
read `__init__.pyi`, and a test holds the two together.
"""

from __future__ import annotations

from trialwise.lazy_exports import lazy_names

#: Where each public name lives.
_MODULES = {
    "bound": (
        "FixedSize Shortfall expected_trials_bound fixed_size shortfall Mix default_alternative"
    ),
    "shipped_designs": "DesignCache design_key",
    "walks": "OperatingCharacteristic",
    "concurrency": "trials_to_start Draw issue_order",
    "design": "Method SequentialDesign",
    "stopped_rates": "naive_bias stopped_estimate stopped_interval",
    "trialwise.stats.result_types": "Decision",
    "trialwise.stats.toolbox.blaker_intervals": "blaker_interval",
    "trialwise.stats.toolbox.concurrent_rounds": (
        "RoundCharacteristic Standing chance_needed round_characteristic standing"
    ),
    "trialwise.stats.toolbox.stopping_bias": "estimate_bias naive_interval",
    "trialwise.stats.toolbox.adaptive_sampling": (
        "AdaptiveCharacteristic AdaptiveDesign adaptive_design"
    ),
}
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)
