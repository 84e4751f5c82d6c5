"""Prompts with the input in them: `Translate {{ input.text }}`.

`{{ input }}` stands for the whole input and `{{ input.text }}` for a field of it. Everything is
replaced in one pass, so that an input that contains braces stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from trialwise.engine.ports import ServiceError
from trialwise.errors import InvalidArgument
from trialwise.model.trial import ErrorClass
from trialwise.services._payloads import input_text

_SLOT = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)
_NAME = r"input(\.[^.\s]+)*"


class PromptUnfilled(ServiceError):
    """An input lacks a field that the prompt names."""

    stops_run = True

    def __init__(self, slot: str, known: str) -> None:
        super().__init__(
            f"the prompt names {{{{ {slot} }}}}, which an input lacks; {known}",
            ErrorClass.PRE_VALIDATION,
        )


class PromptTemplate:
    """A prompt that becomes the messages of a conversation.

    >>> prompt = PromptTemplate("Translate to {{ input.to }}: {{ input.text }}")
    >>> prompt.fill({"to": "German", "text": "good day"})
    [{'role': 'user', 'content': 'Translate to German: good day'}]

    Args:
        prompt: The text of the user's message, or messages with `role` and `content`.
    """

    def __init__(self, prompt: str | Sequence[Mapping[str, Any]]) -> None:
        given = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
        if not given:
            raise InvalidArgument("prompt", prompt, "hold at least one message")
        for one in given:
            _check_message(one)
        self.messages = [dict(one) for one in given]

    def fill(self, given: Any) -> list[dict[str, Any]]:
        """Fill the messages about one input.

        Raises:
            PromptUnfilled: The input lacks a field.
        """
        return [{**one, "content": _fill(one["content"], given)} for one in self.messages]


def _check_message(message: object) -> None:
    is_message = (
        isinstance(message, Mapping)
        and isinstance(message.get("role"), str)
        and isinstance(message.get("content"), str)
    )
    if not is_message:
        allowed = "be a text, or a list of messages with `role` and `content`"
        raise InvalidArgument("prompt", message, allowed)
    assert isinstance(message, Mapping)
    for slot in _SLOT.findall(message["content"]):
        if not re.fullmatch(_NAME, slot):
            allowed = f"name the input or a field of it, not {{{{ {slot} }}}}"
            raise InvalidArgument("prompt", slot, allowed)


def _fill(template: str, given: Any) -> str:
    return _SLOT.sub(lambda match: _find(match[1], given), template)


def _find(slot: str, given: Any) -> str:
    value = given
    for name in slot.split(".")[1:]:
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        else:
            has = isinstance(value, Mapping)
            known = f"it has {', '.join(map(str, value))}" if has else "it has no fields"
            raise PromptUnfilled(slot, known)
    return input_text(value)
