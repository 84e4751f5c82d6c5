from trialwise.traces.reading import TraceError as TraceError
from trialwise.traces.reading import TraceFormat as TraceFormat
from trialwise.traces.reading import read_trace as read_trace
from trialwise.traces.reading import read_traces as read_traces
