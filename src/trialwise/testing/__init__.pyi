from trialwise.testing.executor_conformance import (
    assert_executor_conforms as assert_executor_conforms,
)
from trialwise.testing.extension_conformance import HOSTILE_REPLIES as HOSTILE_REPLIES
from trialwise.testing.extension_conformance import ScriptedService as ScriptedService
from trialwise.testing.extension_conformance import VirtualClock as VirtualClock
from trialwise.testing.extension_conformance import assert_check_conforms as assert_check_conforms
from trialwise.testing.extension_conformance import (
    assert_report_format_conforms as assert_report_format_conforms,
)
from trialwise.testing.extension_conformance import (
    assert_service_conforms as assert_service_conforms,
)
from trialwise.testing.extension_conformance import (
    assert_trace_reader_conforms as assert_trace_reader_conforms,
)
from trialwise.testing.extension_conformance import example_records as example_records
