"""What the functions of `trialwise` return, for annotations; and a stored comparison, read again.

check                         CheckedPlan
run, run_all                  Result, SuiteResult
measure                       Measurement
compare                       Comparison, Choice or ExploredArms, by its question
"""

from __future__ import annotations

from trialwise.lazy_exports import lazy_names

#: Where each public name lives.
_MODULES = {
    "trialwise.procedures.comparing.findings": "ComparisonFinding ComparisonVerdict Contrast",
    "trialwise.runtime.answers": "Choice Comparison ExploredArms",
    "trialwise.runtime.comparing": "load_comparison",
    "trialwise.runtime.measuring": "Measurement",
    "trialwise.runtime.preparing": "CheckedPlan",
    "trialwise.runtime.result": "Result SuiteResult",
}
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)
