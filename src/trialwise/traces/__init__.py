"""Traces of agents, read from the forms that others keep them in.

    trace_documents      `read_trace` and `read_traces`: parse a document, tell its format, and
                         what every reader needs of an object that somebody else wrote
    model_messages       conversations as the model APIs have them
    otlp, agent_spans    OpenTelemetry GenAI spans
    trace_building       puts a trace together from events, with the rules that all formats share;
                         what a reader does not know, so that the calls of a trace are unknown;
                         sessions that a Python function returns

A reader is a function `read` that returns the traces of a parsed document. It looks
at fields with `TraceFields` and hands what it finds to a `Building`. `TraceFormat` names it, and
`trialwise.testing.assert_trace_reader_conforms` says whether it keeps to what callers rely on.
The formats of other tools and frameworks are in `trialwise.contrib.traces`. The core knows them by
their module paths only and imports them to tell a format, or to read one. A name loads its module
on first use.
"""

from __future__ import annotations

from trialwise.lazy_exports import lazy_names

#: Where each public name lives.
_MODULES = {"trace_documents": "TraceError TraceFormat read_trace read_traces"}
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)
