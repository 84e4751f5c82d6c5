from trialwise.testing.check_conformance import HOSTILE_REPLIES as HOSTILE_REPLIES
from trialwise.testing.check_conformance import assert_check_conforms as assert_check_conforms
from trialwise.testing.report_conformance import (
    assert_report_format_conforms as assert_report_format_conforms,
)
from trialwise.testing.report_conformance import example_records as example_records
from trialwise.testing.scripted_service import ScriptedService as ScriptedService
from trialwise.testing.service_conformance import assert_service_conforms as assert_service_conforms
from trialwise.testing.virtual_clock import VirtualClock as VirtualClock
