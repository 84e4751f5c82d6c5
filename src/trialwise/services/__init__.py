"""The services a contract can be about: adapters to what is under test."""

from __future__ import annotations

from trialwise.lazy_exports import lazy_names

#: Where each public name lives.
_MODULES = {
    "agent": "AgentService McpServer",
    "python_function": "CallableService",
    "programs": "CommandService InputVia",
    "failures": (
        "HttpFailure MalformedReply RecordedFailure RecordingError ReplyTooLarge RequestRefused"
    ),
    "http_endpoint": "HttpService",
    "openai_chat": "ChatService Prices",
    "replay": "RecordingService ReplayService",
}
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)
