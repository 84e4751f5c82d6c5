"""Test systems that do not behave the same way twice.

    import trialwise as tw

    contract = tw.Contract(
        "sums", service=agent,
        criteria=[tw.Criterion("answers", tw.contains("555"), at_least=0.9)],
    )
    result = tw.run(contract, inputs=["What is 15 * 37?"])
    result.show()

`trialwise.stats` holds the statistics, `trialwise.procedures` the decisions. Nothing is imported
until it is used; type checkers read `__init__.pyi`.
"""

from trialwise.catalogue import CHECK_FUNCTIONS
from trialwise.lazy_exports import lazy_names

__version__ = "0.2.0.dev1"

#: Where each public name lives.
# fmt: off
_MODULES = {
    "checks": f"{CHECK_FUNCTIONS} all_of any_of named not_ predicate",
    "engine.ports": "ServiceError TrialContext",
    "errors": (
        "BrokenCheck "
        "BaselineError DesignRefused InvalidArgument JournalDamaged JournalInUse RunInterrupted "
        "RunNotFound TrialwiseError"
    ),
    "judges": (
        "Calibration CalibrationError GoldSet GoldSetError GoldUnit Juror NothingJudged VoteCache "
        "WinRate calibrate judge pairwise read_calibration read_gold similar win_rate"
    ),
    "model.baseline": "Baseline Covariate CovariateKind",
    "model.claim": (
        "Claim Estimator Input Intent PopulationClaim Sampling SamplingRole TargetEstimand"
    ),
    "model.contract": "Contract Latency LatencyConstraint Prevalence Validity",
    "model.criterion": "Criterion Origin",
    "model.evidence": "StopReason",
    "model.gate": "Expectation Metrics Reliability Stability",
    "model.matcher": "Exact NumberSchema",
    "model.options": "AbortRule Budget Horizon RunOptions",
    "model.plan": "Plan",
    "model.reply": "Reply Setup Usage",
    "model.run": "RunRecord",
    "model.trace": "ToolCall Trace Turn",
    "model.trial": "Analysis CheckResult ErrorClass FailReason Outcome Trial",
    "model.verdict": "Decision Finding Verdict",
    "outcomes.outcome_reading": "read_outcomes",
    "outcomes.outcome_rows": "OutcomeRow Outcomes OutcomesUnreadable",
    "procedures.base": "Procedure",
    "procedures.comparing.findings": "ComparisonFinding ComparisonVerdict Contrast",
    "services": (
        "AgentService CallableService ChatService CommandService HttpService McpServer Prices "
        "RecordingService ReplayService"
    ),
    "runtime.answers": "Choice Comparison ExploredArms",
    "runtime.comparing": (
        "achoose acompare choose compare compare_runs explore load_comparison"
    ),
    "runtime.guardrail_contract": "guardrail_contract",
    "runtime.measuring": "Measurement ameasure measure",
    "runtime.preparing": "CheckedPlan check",
    "runtime.result": "Result SuiteResult",
    "runtime.running": "arun run run_all",
    "runtime.trial_sizing": (
        "SizingAnswer plan plan_compare plan_compliance plan_latency plan_pairs plan_precision "
        "plan_regression"
    ),
    "runtime.outcome_scoring": "Scored measure_outcomes score",
    "runtime.stored_scoring": "score_run",
    "traces.trace_documents": "read_trace read_traces",
}
# fmt: on
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)
