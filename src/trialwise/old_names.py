"""Names that left `trialwise` in 0.2. They work for one version, and each says what replaced it.

Nothing imports this module before somebody asks `trialwise` for a name that it does not have.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from warnings import warn

#: The new home of each name that moved.
_MOVED = {
    "errors": "BaselineError JournalDamaged JournalInUse RunNotFound",
    "extend": "Procedure",
    "judges": (
        "Calibration CalibrationError GoldSet GoldSetError GoldUnit Juror NothingJudged VoteCache "
        "WinRate calibrate pairwise read_calibration read_gold win_rate"
    ),
    "model": (
        "AbortRule Analysis Baseline Claim Covariate CovariateKind Estimator Exact Expectation "
        "FailReason Finding Horizon Intent LatencyConstraint Metrics NumberSchema Origin Outcome "
        "Plan PopulationClaim Prevalence Reliability RunRecord SamplingRole Setup Stability "
        "StopReason TargetEstimand Trial Validity"
    ),
    "outcomes": "OutcomeRow Outcomes OutcomesUnreadable Scored measure_outcomes read_outcomes",
    "planning": (
        "SizingAnswer plan_compare plan_compliance plan_latency plan_pairs plan_precision "
        "plan_regression"
    ),
    "results": (
        "CheckedPlan Choice ComparisonFinding ComparisonVerdict Contrast ExploredArms "
        "load_comparison"
    ),
    "services": (
        "AgentService CallableService ChatService CommandService HttpService McpServer Prices "
        "RecordingService ReplayService"
    ),
    "traces": "read_traces",
}
#: The new home of each name, by name.
MOVED = {name: module for module, names in _MOVED.items() for name in names.split()}
#: Questions that had a function of their own: the function that asks them now, and its question.
ASKED = {
    "achoose": ("acompare", "best"),
    "choose": ("compare", "best"),
    "explore": ("compare", "describe"),
}


def find_old_name(name: str) -> object:
    """Return what `trialwise` called by a name until 0.1, with a warning that says what to write.

    Raises:
        AttributeError: It never had such a name.
    """
    if name in MOVED:
        found = getattr(import_module(f"trialwise.{MOVED[name]}"), name)
        instead = f"trialwise.{MOVED[name]}.{name}"
    elif name in ASKED:
        function, question = ASKED[name]
        found = partial(getattr(import_module("trialwise"), function), question=question)
        instead = f'trialwise.{function}(..., question="{question}")'
    else:
        raise AttributeError(f"module 'trialwise' has no attribute {name!r}")
    # The caller of the caller: who wrote `trialwise.NAME`, not the module that was asked for it.
    warn(f"trialwise.{name} is now {instead}", DeprecationWarning, stacklevel=3)
    return found
