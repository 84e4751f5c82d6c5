"""Sessions as the Python objects that agent frameworks return, recognised by what they offer.

None of these frameworks is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trialwise.model.reply import Usage, sum_usages
from trialwise.model.trace import read_tokens
from trialwise.traces.trace_building import ReturnedSession, offers_methods, read_document, to_plain

_LANGCHAIN = ("ai", "human", "system", "tool", "function", "AIMessageChunk")


def find_session(value: Any) -> ReturnedSession | None:
    """Return the session that the result of a framework is; None where it is none."""
    for find in (_find_langchain, _find_pydantic_ai, _find_openai_agents):
        found = find(value)
        if found is not None:
            return found
    return None


def _find_langchain(value: Any) -> ReturnedSession | None:
    """A list of messages of LangChain, a state of LangGraph that holds one, or one message."""
    # Of a plain document with messages nobody knows whether it is a session or the reply.
    messages: Any = value.get("messages") if isinstance(value, Mapping) else value
    if not isinstance(messages, list):
        messages = value = [messages]
    return read_document(value) if messages and all(map(_is_langchain, messages)) else None


def _is_langchain(one: Any) -> bool:
    kind = getattr(one, "type", None)
    return kind in _LANGCHAIN and hasattr(one, "content") and offers_methods(one, "model_dump")


def _find_pydantic_ai(value: Any) -> ReturnedSession | None:
    if not offers_methods(value, "all_messages"):
        return None
    found = read_document(value.all_messages())
    return found._replace(value=getattr(value, "output", getattr(value, "data", found.value)))


def _find_openai_agents(value: Any) -> ReturnedSession | None:
    if not offers_methods(value, "to_input_list") or not hasattr(value, "final_output"):
        return None
    found = read_document(value.to_input_list(), "responses")
    usage = _sum_responses(getattr(value, "raw_responses", ()))
    return ReturnedSession(replace(found.trace, usage=usage), value.final_output)


def _sum_responses(responses: Any) -> Usage | None:
    usages = [to_plain(getattr(one, "usage", None)) for one in responses or ()]
    return sum_usages([read_tokens(one) for one in usages])
