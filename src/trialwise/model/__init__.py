"""Frozen data types: no clock, no files, no network.

contract, criterion, claim              what is promised, of which inputs, about whom
matcher                                 what a number is held against
options, run_settings                   how a run is made
gate, metrics                           limits on repeated runs, and what came of them
plan                                    a run, resolved before the first trial
reply, trace, trial                     what came back, and what it was checked for
trial_table, trial_columns, trial_lines trials in columns, and the line of each in a journal
evidence                                what reports need, and what a decision rests on
verdict                                 findings, and the verdict that keeps them
baseline                                what was observed of an earlier version, and under what
run                                     a run as it is kept: its trials and what they name
codec, plain_json                       values as plain JSON and back, and lines of it
fingerprint                             short names of contents and plans, and earlier records

A name loads its module on first use; type checkers read `__init__.pyi`.
"""

from __future__ import annotations

from trialwise.lazy_exports import lazy_names

#: Where each public name lives.
_MODULES = {
    "baseline": "Baseline BaselineReference Covariate CovariateKind",
    "claim": ("Claim Estimator Input Intent PopulationClaim Sampling SamplingRole TargetEstimand"),
    "contract": "Contract Latency LatencyConstraint Prevalence Validity",
    "criterion": "Criterion Origin",
    "evidence": "StopReason",
    "gate": "Expectation Gate Metrics Reliability Stability",
    "matcher": "Exact NumberSchema",
    "options": "AbortRule Budget Horizon RunOptions",
    "metrics": "GateFinding",
    "plan": "CriterionPlan Plan",
    "reply": "Reply Setup Usage",
    "run": "RunRecord",
    "trace": "ToolCall Trace Turn",
    "trial": "Analysis CheckResult ErrorClass FailReason Outcome Trial",
    "verdict": "Decision Finding Verdict",
}
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)
