"""Calibration: what the rules really do, computed by enumeration and set beside what they claim.

Companion §10.6 asks for published calibration fixtures; none exist yet, so nothing here claims
agreement with them. What is shown is stronger and weaker at once: exact error rates of this
implementation under stated reference models, from the same functions a verdict uses.
"""

from __future__ import annotations

from trialwise.contrib.conformance.calibration.calibration_row import Row
from trialwise.contrib.conformance.calibration.envelope_calibration import envelope_rows
from trialwise.contrib.conformance.calibration.latency_calibration import latency_rows
from trialwise.contrib.conformance.calibration.rate_calibration import (
    compliance_rows,
    regression_rows,
)

__all__ = ["Row", "calibrate"]


def calibrate() -> list[Row]:
    """Every row of the calibration table, both rule sets, by exact enumeration."""
    return [*regression_rows(), *compliance_rows(), *latency_rows(), *envelope_rows()]
