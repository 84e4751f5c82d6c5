from trialwise.traces.trace_documents import TraceError as TraceError
from trialwise.traces.trace_documents import TraceFormat as TraceFormat
from trialwise.traces.trace_documents import read_trace as read_trace
from trialwise.traces.trace_documents import read_traces as read_traces
