"""Traces of agents in the forms of other tools and frameworks.

    cloud_messages       messages of Gemini and Bedrock
    langchain, pydantic_ai
                         messages of the two frameworks
    framework_objects    what these frameworks, and the OpenAI Agents SDK, return in Python
    event_logs           plain events, one a line, such as vally's
    coding_agents        sessions of Claude Code and Codex
    inspect_logs         logs of Inspect AI
    span_dialects        spans by other conventions than OpenTelemetry's: OpenInference, OpenLLMetry
                         and Vercel's AI SDK

A reader is a module with two functions: `recognises` tells whether the members of a document are of
its format, and `read` returns the traces of a parsed document. `trialwise.traces.trace_documents`
names the readers in a table and imports them to tell a format, or to read one.
"""
