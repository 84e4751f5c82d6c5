"""What tests of checks, services and report formats need, for their authors.

    scripted_service     a service that says what a test tells it to
    virtual_clock        a clock whose time passes only when somebody waits
    check_conformance    what every check has to satisfy
    service_conformance  what every service has to satisfy
    report_conformance   what every format of a report has to satisfy

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
