"""Built-in postconditions, each with an explanation of what it found.

A name loads its module on first use, and a module its libraries on first use of a check: importing
this package imports none of them. Type checkers read `__init__.pyi`.
"""

from __future__ import annotations

from trialwise.lazy_exports import lazy_names

#: Where each public name lives.
# fmt: off
_MODULES = {
    "agents": (
        "FinalAnswer MaxRepeatedFailures MaxTurns final_answer max_repeated_failures max_turns"
    ),
    "resources": "MaxCost MaxLatency MaxTokens max_cost max_latency max_tokens",
    "predicates": "Predicate predicate",
    "combine": "AllOf AnyOf Named Not all_of any_of named not_",
    "equality": "Equals equals",
    "expected_answers": "AsExpected Comparison as_expected",
    "expressions": "Expression expression",
    "json_paths": "JsonPath Require json_path",
    "patterns": "Matches matches",
    "exit_codes": "ExitCode exit_code",
    "check_registry": "from_spec spellings to_spec",
    "json_schemas": "JsonSchema json_schema",
    "parsable": "Format NumericRange Parses numeric_range parses",
    "texts": (
        "Contains EndsWith Length NotContains StartsWith contains ends_with length "
        "not_contains starts_with"
    ),
    "tools": (
        "ToolCallCount ToolCalled ToolCalledWith ToolNotCalled ToolsInOrder tool_call_count "
        "tool_called tool_called_with tool_not_called tools_in_order"
    ),
}
# fmt: on
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)
