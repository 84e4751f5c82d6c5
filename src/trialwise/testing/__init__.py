"""What tests of checks, services, report formats and trace readers need, for their authors.

    executor_conformance    what every executor satisfies
    extension_conformance   what every check, service, report format and trace reader satisfies;
                            a service that says what a test tells it to, and a clock that moves
                            only while somebody waits

The `assert_…` functions raise `AssertionError` with what is wrong, so that they work under pytest
and without it. A name loads its module on first use.
"""

from __future__ import annotations

from trialwise.lazy_exports import lazy_names

_MODULES = {
    "executor_conformance": "assert_executor_conforms",
    "extension_conformance": (
        "HOSTILE_REPLIES assert_check_conforms assert_report_format_conforms "
        "assert_service_conforms assert_trace_reader_conforms example_records "
        "ScriptedService VirtualClock"
    ),
}
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)
