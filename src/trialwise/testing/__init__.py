"""What tests of checks, services and report formats need, for their authors.

    doubles                 a service that says what a test tells it to, and a clock that moves only
                            while somebody waits
    extension_conformance   what every check, service and format of a report has to satisfy

The `assert_…` functions raise `AssertionError` with what is wrong, so that they work under pytest
and without it. A name loads its module on first use.
"""

from __future__ import annotations

from trialwise.lazy_exports import lazy_names

_MODULES = {
    "doubles": "ScriptedService VirtualClock",
    "extension_conformance": (
        "HOSTILE_REPLIES assert_check_conforms assert_report_format_conforms "
        "assert_service_conforms example_records"
    ),
}
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)
