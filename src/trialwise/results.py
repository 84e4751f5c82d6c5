"""What the functions of `trialwise` return, for annotations; and a stored comparison, read again.

check                         CheckedPlan
run, run_all                  Result, SuiteResult
measure                       Measurement
compare                       Comparison, Choice or ExploredArms, by its question
"""

from __future__ import annotations

from trialwise.procedures.comparing.findings import ComparisonFinding, ComparisonVerdict, Contrast
from trialwise.runtime.answers import Choice, Comparison, ExploredArms
from trialwise.runtime.comparing import load_comparison
from trialwise.runtime.measuring import Measurement
from trialwise.runtime.preparing import CheckedPlan
from trialwise.runtime.result import Result, SuiteResult

__all__ = [
    "CheckedPlan",
    "Choice",
    "Comparison",
    "ComparisonFinding",
    "ComparisonVerdict",
    "Contrast",
    "ExploredArms",
    "Measurement",
    "Result",
    "SuiteResult",
    "load_comparison",
]
