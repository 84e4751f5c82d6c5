from trialwise.traces.trace_files import TraceError as TraceError
from trialwise.traces.trace_files import TraceFormat as TraceFormat
from trialwise.traces.trace_files import read_trace as read_trace
from trialwise.traces.trace_files import read_traces as read_traces
