"""A decision end to end: from counts to a verdict that shows its reasoning.

The consult-advice contract of the methodology's worked example has three criteria. One is
compared with a measured baseline, one may never fail, and one must meet an objective at a strict
level, by the rule `wilson`. Run it with `python examples/worked_decision.py`.
"""

import sys

from trialwise.model.evidence import Tally
from trialwise.pages.analysis import render_analysis
from trialwise.procedures.compliance import decide_compliance
from trialwise.procedures.composite import compose
from trialwise.procedures.observational import decide_observational
from trialwise.procedures.regression import decide_regression

verdict = compose(
    [
        decide_regression(
            "well-formed",
            Tally(trials=1000, passed=953),
            baseline=Tally(trials=2000, passed=1902),
            rule="wilson",
        ),
        decide_observational("no-self-harm", Tally(trials=200, passed=200)),
        decide_compliance(
            "layperson-readable",
            Tally(trials=800, passed=788),
            required_rate=0.98,
            alpha=0.001,
            rule="wilson",
        ),
    ]
)

encoding = sys.stdout.encoding or "ascii"
print(render_analysis(verdict, title="consult-advice", unicode="utf" in encoding.lower()))
