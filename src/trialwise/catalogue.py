"""Where each check and service lives, what their packages export, the options of runs.

Written by `make stubs` from the modules themselves: nothing is imported to find a name.
"""

# fmt: off

#: The checks that a suite may name; each is named as its constructor is.
_CHECK_MODULES = {
    "checks.expressions": "expression",
    "checks.parsable": "json_path numeric_range parses",
    "checks.resources": (
        "exit_code final_answer max_cost max_latency max_repeated_failures max_tokens "
        "max_turns"
    ),
    "checks.texts": "contains ends_with length matches not_contains starts_with",
    "checks.tools": (
        "tool_call_count tool_called tool_called_with tool_not_called tools_in_order"
    ),
    "checks.whole_reply": "as_expected equals json_schema",
    "judges.similarity": "similar",
}
#: The module of each check.
CHECKS = dict(
    sorted((name, module) for module, names in _CHECK_MODULES.items() for name in names.split())
)

#: The constructor of each service that a suite may name.
SERVICES = {
    "agent": "services.agent:AgentService",
    "chat": "services.openai_chat:ChatService",
    "command": "services.programs:CommandService",
    "http": "services.http_endpoint:HttpService",
    "python": "services.python_function:CallableService",
    "replay": "services.replay:ReplayService",
}

#: The public names of `trialwise.checks`, by module.
CHECK_EXPORTS = {
    "check_base": "Check Unreadable to_spec",
    "combine": (
        "AllOf AnyOf Named Not all_of any_of named not_ from_spec spellings"
    ),
    "expressions": "Expression expression",
    "parsable": (
        "Format JsonPath NumericRange Parses Require json_path numeric_range parses"
    ),
    "predicates": "Predicate predicate",
    "resources": (
        "ExitCode MaxCost MaxLatency MaxTokens exit_code max_cost max_latency max_tokens "
        "FinalAnswer MaxRepeatedFailures MaxTurns final_answer max_repeated_failures "
        "max_turns"
    ),
    "texts": (
        "Contains EndsWith Length Matches NotContains StartsWith contains ends_with "
        "length matches not_contains starts_with"
    ),
    "tools": (
        "ToolCalled ToolCalledWith ToolNotCalled tool_called tool_called_with "
        "tool_not_called ToolCallCount ToolsInOrder tool_call_count tools_in_order"
    ),
    "whole_reply": (
        "AsExpected Comparison Equals JsonSchema as_expected equals json_schema"
    ),
}

#: The public names of `trialwise.services`, by module.
SERVICE_EXPORTS = {
    "agent": "AgentService McpServer",
    "http_endpoint": "HttpService",
    "openai_chat": "ChatService Prices",
    "programs": "CommandService InputVia",
    "python_function": "CallableService",
    "replay": "RecordingService ReplayService",
    "service_factors": (
        "HttpFailure MalformedReply RecordedFailure RecordingError ReplyTooLarge "
        "ReportedFailure RequestRefused"
    ),
}

#: The options of a run in plain values, from the fields of `RunOptions`: `--help` shows them and
#: loads no more. The name of each option, the field that it sets, its kind and what it means.
OPTIONS: tuple[tuple[str, str, str, str], ...] = (
    ("trials", "trials", "count", "A fixed number of trials for every criterion, or one for each sampling."),
    ("max-trials", "max_trials", "count", "Upper limit on trials where no number is fixed."),
    ("intent", "intent", "verification|smoke", "`verification` refuses weak designs; `smoke` is a quick check."),
    ("rule", "rule", "exact|wilson|fisher", "The rule set for every decision."),
    ("analysis", "analysis", "measured|intent-to-treat|per-protocol", "Which trials decide: `measured` asks again what never reached the service, `intent-to-treat` counts it as failed, `per-protocol` also leaves out empty runs."),
    ("seed", "seed", "integer", "Seed for the order of inputs and for each trial."),
    ("draw", "draw", "balanced|independent", "How inputs are drawn."),
    ("concurrency", "concurrency", "count", "Number of concurrent trials."),
    ("executor", "executor", "text", "Where trials run: `local`, `processes` for services that keep a processor busy, `dask` or `ray`; an address follows a colon, such as `dask:tcp://scheduler:8786`."),
    ("rate", "rate_per_s", "pace", "Upper limit on trials started per unit of time."),
    ("timeout", "timeout_s", "time", "Time limit for one attempt."),
    ("retries", "retries", "count from 0", "Number of further attempts after an infrastructure error. The verdict reports them."),
    ("cost-per-trial", "cost_per_trial_usd", "money", "What a trial costs where the service does not tell. A budget reserves it for each trial in flight."),
    ("override", "overrides", "names", "Codes of major caveats to accept under verification."),
    ("smoke-refuses", "smoke_refuses", "nothing|hard|major", "What refuses a smoke run, too, instead of a warning: `hard` invalidators of a comparison, or also `major` caveats."),
    ("baseline", "baseline", "text", "The identifier of the baseline to compare with."),
    ("horizon", "horizon", "count", "Number of recurring runs over which wrong verdicts are bounded (§8.5), or `gates` or `days`."),
    ("correction", "correction", "none|bonferroni|holm|bh|by|e-bh", "How decisions that belong together are corrected for their number."),
    ("family", "family", "text", "Name of the decisions that are corrected together; contracts may share it."),
    ("family-size", "family_size", "count", "Number of decisions in the family, where more belong to it than are run here."),
    ("inconclusive", "inconclusive", "undecided|fail", "What the exit code says of a run that is INCONCLUSIVE: 3 (`undecided`) or 1 (`fail`). The verdict stays."),
    ("max-seconds", "budget.seconds", "time", "Maximum time. Every result is kept."),
    ("max-usd", "budget.usd", "money", "Maximum cost. Every result is kept."),
    ("confidence", "confidence", "rate", "1 − the largest probability of a wrong PASS, and of a wrong FAIL."),
)
