"""What each reference suite asks, put to the production path, in the suite's own field names.

One function per suite and rule set: it calls what a verdict would call and renames the answer.
No arithmetic happens here that a verdict does not do.
"""

from __future__ import annotations

from trialwise.contrib.conformance.adapters.latency import LATENCY
from trialwise.contrib.conformance.adapters.rates import RATES
from trialwise.contrib.conformance.adapters.sizing import SIZING
from trialwise.contrib.conformance.adapters.verdicts import VERDICTS

ADAPTERS = {**RATES, **SIZING, **LATENCY, **VERDICTS}
