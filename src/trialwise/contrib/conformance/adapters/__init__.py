"""What each reference suite asks, put to the production path, in the suite's own field names.

One function per suite and rule set: it calls what a verdict would call and renames the answer.
No arithmetic happens here that a verdict does not do.
"""

from __future__ import annotations

from trialwise.contrib.conformance.adapters.latency_cases import LATENCY
from trialwise.contrib.conformance.adapters.rate_cases import RATES
from trialwise.contrib.conformance.adapters.sizing_cases import SIZING
from trialwise.contrib.conformance.adapters.verdict_cases import VERDICTS

ADAPTERS = {**RATES, **SIZING, **LATENCY, **VERDICTS}
