"""Test systems that do not behave the same way twice.

    import trialwise as tw

    contract = tw.Contract(
        "sums", service=agent,
        criteria=[tw.Criterion("answers", tw.contains("555"), at_least=0.9)],
    )
    result = tw.run(contract, inputs=["What is 15 * 37?"])
    result.show()

What most tests write stands here. The rest is one step further, as in `tw.services.HttpService`:

    checks, services, judges, traces    the parts of a contract, and what reads replies
    model, results, outcomes            what functions take and return
    planning, stats                     how many trials are needed; the numbers alone
    errors                              everything that is raised
    extend, testing                     extensions of trialwise, and their tests

Nothing is imported until it is used; type checkers read `__init__.pyi`.
"""

from trialwise.catalogue import CHECKS
from trialwise.lazy_exports import lazy_names

__version__ = "0.2.0.dev1"

#: Where each public name lives.
# fmt: off
_MODULES = {
    "checks": "all_of any_of named not_ predicate "
    + " ".join(name for name, where in CHECKS.items() if where.startswith("checks.")),
    "engine.ports": "ServiceError TrialContext",
    "errors": "BrokenCheck DesignRefused InvalidArgument RunInterrupted TrialwiseError",
    "judges": "judge similar",
    "model": (
        "Budget CheckResult Contract Criterion Decision ErrorClass Input Latency Reply RunOptions "
        "Sampling ToolCall Trace Turn Usage Verdict"
    ),
    "results": "Comparison Measurement Result SuiteResult",
    "runtime.comparing": "acompare compare compare_runs",
    "runtime.guardrail_contract": "guardrail_contract",
    "runtime.measuring": "ameasure measure",
    "runtime.outcome_scoring": "score",
    "runtime.preparing": "check",
    "runtime.running": "arun run run_all",
    "runtime.reply_scoring": "score_run",
    "runtime.trial_sizing": "plan",
    "traces": "read_trace",
}
# fmt: on
#: Modules that need no import of their own: `tw.judges.calibrate`.
_SUBMODULES = (
    *("checks", "errors", "extend", "judges", "model", "outcomes", "planning", "results"),
    *("services", "stats", "testing", "traces"),
)
_EXPORTS, _find, _list = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)


def __getattr__(name: str) -> object:
    if name in _EXPORTS:
        return _find(name)
    if name in _SUBMODULES:
        # The import binds the module here, so that this function is not asked again.
        __import__(f"{__name__}.{name}")
        return globals()[name]
    from trialwise.old_names import find_old_name

    return find_old_name(name)


def __dir__() -> list[str]:
    return sorted({*_list(), *_SUBMODULES})
