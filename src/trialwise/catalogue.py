"""Where each check and each service lives, and what their packages export.

Written by `make stubs` from the modules themselves: nothing is imported to find a name.
"""

# fmt: off

#: The constructor of each check that a suite may name.
CHECKS = {
    "as_expected": "checks.equality:as_expected",
    "contains": "checks.texts:contains",
    "ends_with": "checks.texts:ends_with",
    "equals": "checks.equality:equals",
    "exit_code": "checks.resources:exit_code",
    "expression": "checks.expressions:expression",
    "final_answer": "checks.resources:final_answer",
    "json_path": "checks.parsable:json_path",
    "json_schema": "checks.json_schemas:json_schema",
    "length": "checks.texts:length",
    "matches": "checks.texts:matches",
    "max_cost": "checks.resources:max_cost",
    "max_latency": "checks.resources:max_latency",
    "max_repeated_failures": "checks.resources:max_repeated_failures",
    "max_tokens": "checks.resources:max_tokens",
    "max_turns": "checks.resources:max_turns",
    "not_contains": "checks.texts:not_contains",
    "numeric_range": "checks.parsable:numeric_range",
    "parses": "checks.parsable:parses",
    "similar": "judges.similarity:similar",
    "starts_with": "checks.texts:starts_with",
    "tool_call_count": "checks.tools:tool_call_count",
    "tool_called": "checks.tools:tool_called",
    "tool_called_with": "checks.tools:tool_called_with",
    "tool_not_called": "checks.tools:tool_not_called",
    "tools_in_order": "checks.tools:tools_in_order",
}

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
    "check_base": "Check Unreadable from_spec spellings to_spec",
    "combine": "AllOf AnyOf Named Not all_of any_of named not_",
    "equality": "AsExpected Comparison Equals as_expected equals",
    "expressions": "Expression expression",
    "json_schemas": "JsonSchema json_schema",
    "parsable": (
        "Format JsonPath NumericRange Parses Require json_path numeric_range parses"
    ),
    "predicates": "Predicate predicate",
    "resources": (
        "ExitCode FinalAnswer MaxCost MaxLatency MaxRepeatedFailures MaxTokens MaxTurns "
        "exit_code final_answer max_cost max_latency max_repeated_failures max_tokens "
        "max_turns"
    ),
    "texts": (
        "Contains EndsWith Length Matches NotContains StartsWith contains ends_with "
        "length matches not_contains starts_with"
    ),
    "tools": (
        "ToolCallCount ToolCalled ToolCalledWith ToolNotCalled ToolsInOrder "
        "tool_call_count tool_called tool_called_with tool_not_called tools_in_order"
    ),
}

#: The public names of `trialwise.services`, by module.
SERVICE_EXPORTS = {
    "agent": "AgentService McpServer",
    "failures": (
        "HttpFailure MalformedReply RecordedFailure RecordingError ReplyTooLarge "
        "ReportedFailure RequestRefused"
    ),
    "http_endpoint": "HttpService",
    "openai_chat": "ChatService Prices",
    "programs": "CommandService InputVia",
    "python_function": "CallableService",
    "replay": "RecordingService ReplayService",
}

#: The constructors of checks, as `trialwise` itself exports them.
CHECK_FUNCTIONS = (
        "as_expected contains ends_with equals exit_code expression final_answer "
        "json_path json_schema length matches max_cost max_latency max_repeated_failures "
        "max_tokens max_turns not_contains numeric_range parses starts_with "
        "tool_call_count tool_called tool_called_with tool_not_called tools_in_order"
    )
