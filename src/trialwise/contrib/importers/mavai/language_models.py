"""Language models: the parameters of a services file, and the service that does the same."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trialwise.contrib.importers.mavai.contract_inputs import Given, Media
from trialwise.contrib.importers.mavai.file_roots import Roots
from trialwise.contrib.importers.yaml_mappings import Keys, is_number
from trialwise.declarations.written import Node
from trialwise.declarations.written import show_value as shown
from trialwise.suite.suite_problems import Problems
from trialwise.suite.yaml_reading import plain

__all__ = [
    "LANGUAGE_MODEL",
    "PROVIDERS",
    "Provider",
    "check_model",
    "defaults",
    "model_input",
    "model_service",
]

LANGUAGE_MODEL = "language-model"
#: What the format says where a file does not.
_MAX_TOKENS = 4096
_MOST_TOKENS = 16_000
#: A model that thinks needs more than this to answer, too.
_THINKING_TOKENS = 1024
_CAPABILITIES = (
    *("response-schema", "prompt-caching", "thinking"),
    *("image-input", "document-input", "audio-input"),
)
_KEYS = (
    *("system-prompt", "provider", "model", "temperature", "top-p", "thinking", "prompt-caching"),
    *("max-tokens", "deadline-ms", "response-schema", "capabilities"),
)
_MIME = {"image": "image/png", "document": "application/pdf", "audio": "audio/wav"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Where a model is reached, and what may be asked of it there."""

    base_url: str
    key: str | None
    """The environment variable with its key."""
    media: tuple[str, ...] = ()
    has_schema: bool = True
    has_thinking: bool = False
    has_caching: bool = False
    max_tokens: str = "max_tokens"
    """What it calls the longest answer."""


#: The empty name stands for whatever endpoint the environment names.
PROVIDERS = {
    "": Provider(
        base_url="${MAVAI_LLM_BASE_URL}",
        key="MAVAI_LLM_API_KEY",
        media=("image", "document", "audio"),
    ),
    "openai": Provider(
        base_url="https://api.openai.com/v1",
        key="OPENAI_API_KEY",
        media=("image", "document", "audio"),
        max_tokens="max_completion_tokens",
    ),
    "mistral": Provider(
        base_url="https://api.mistral.ai/v1", key="MISTRAL_API_KEY", media=("image", "document")
    ),
    "ollama": Provider(base_url="http://localhost:11434/v1", key=None, media=("image",)),
    "apertus": Provider(
        base_url="https://api.publicai.co/v1", key="PUBLICAI_API_KEY", has_schema=False
    ),
    "anthropic": Provider(
        base_url="https://api.anthropic.com/v1/messages",
        key="ANTHROPIC_API_KEY",
        media=("image", "document"),
        has_thinking=True,
        has_caching=True,
    ),
}


def defaults(kind: str) -> dict[str, Any]:
    """What a configuration means where it says nothing."""
    return {"max-tokens": _MAX_TOKENS} if kind == LANGUAGE_MODEL else {}


def check_model(
    node: Node, roots: Roots, problems: Problems, *, what: str, whole: bool
) -> dict[str, Any]:
    """The parameters of a model, with the prompt's text, as far as they are sound.

    Args:
        node: The configuration, or the part of it that an experiment replaces.
        roots: Where its files are.
        problems: Where to say what is wrong.
        what: How a message calls it.
        whole: Whether the prompt has to be there.
    """
    required = ("system-prompt",) if whole else ()
    keys = Keys(node, problems, what=what, known=_KEYS, required=required)
    thinks = keys.choice("thinking", "adaptive", "none")
    found: dict[str, Any] = {
        "system-prompt": _prompt(keys, roots),
        "provider": keys.choice("provider", *(name for name in PROVIDERS if name)),
        "model": keys.text("model", "the name of a model"),
        "temperature": keys.real("temperature"),
        "top-p": _top_p(keys),
        "thinking": thinks,
        "prompt-caching": keys.flag("prompt-caching"),
        "max-tokens": keys.whole("max-tokens", 1, _MOST_TOKENS),
        "deadline-ms": keys.whole("deadline-ms", 1),
        "response-schema": _schema(keys),
        "capabilities": _capabilities(keys),
    }
    found = {key: value for key, value in found.items() if value is not None}
    if whole:
        _check_provider(keys, found)
    return found


def _prompt(keys: Keys, roots: Roots) -> str | None:
    if "system-prompt" not in keys or not keys.at("system-prompt").is_mapping:
        return keys.text("system-prompt", "text, or `{file: path}`")
    inner = Keys(
        keys.at("system-prompt"),
        keys.problems,
        what="`system-prompt`",
        known=("file",),
        required=("file",),
    )
    text = roots.text(inner.at("file")) if "file" in inner else None
    if text == "":
        keys.refuse("system-prompt", "`system-prompt` must be text, the file is empty")
    return text or None


def _top_p(keys: Keys) -> float | None:
    if "top-p" not in keys:
        return None
    value = keys.at("top-p").value
    if is_number(value) and 0 < value <= 1:
        return float(value)
    message = f"`top-p` must be a number above 0 and at most 1, got {shown(keys.at('top-p'))}"
    keys.refuse("top-p", message)
    return None


def _schema(keys: Keys) -> dict[str, Any] | None:
    if "response-schema" not in keys:
        return None
    node = keys.at("response-schema")
    if not node.is_mapping:
        keys.refuse("response-schema", f"`response-schema` must be a mapping, got {shown(node)}")
        return None
    schema: dict[str, Any] = plain(node)
    return schema


def _capabilities(keys: Keys) -> list[str] | None:
    if "capabilities" not in keys:
        return None
    nodes = keys.items("capabilities", "a list of at least one capability")
    names = [node.value for node in nodes]
    for node in nodes:
        if node.value not in _CAPABILITIES:
            known = ", ".join(_CAPABILITIES)
            keys.problems.add(node, f"`capabilities` knows {known}, got {shown(node)}")
    if len({str(one) for one in names}) < len(names):
        keys.refuse("capabilities", "`capabilities` names each once")
    return sorted(one for one in names if isinstance(one, str))


def _check_provider(keys: Keys, found: Mapping[str, Any]) -> None:
    """Refuse what the provider cannot be asked for."""
    name = found.get("provider", "")
    provider = PROVIDERS[name]
    called = f"the provider {name}" if name else "an endpoint of no provider"
    active = {
        "response-schema": ("response-schema" in found, provider.has_schema),
        "prompt-caching": (found.get("prompt-caching") is True, provider.has_caching),
        "thinking": (found.get("thinking") == "adaptive", provider.has_thinking),
    }
    for key, (is_asked, can) in active.items():
        if is_asked and not can:
            keys.refuse(key, f"`{key}` cannot be asked of {called}")
    for one in [one for one in found.get("capabilities", ()) if one in _CAPABILITIES]:
        kind = one.removesuffix("-input")
        can = kind in provider.media if kind != one else active.get(one, (True, False))[1]
        if not can:
            keys.refuse("capabilities", f"`{one}` cannot be sent to {called}")
    if found.get("thinking") != "adaptive" or not provider.has_thinking:
        return
    if "temperature" in found or "top-p" in found:
        keys.refuse("thinking", "`thinking: adaptive` goes with neither `temperature` nor `top-p`")
    if found.get("max-tokens", _MAX_TOKENS) <= _THINKING_TOKENS:
        message = f"`max-tokens` must be above {_THINKING_TOKENS} where the model thinks first"
        keys.refuse("max-tokens", message)


def model_service(found: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A service of a suite that asks the same model the same way, and what to say about it.

    Raises:
        ValueError: A parameter has no counterpart; the text names it.
    """
    name = found.get("provider", "")
    notes = []
    if not name:
        notes.append(
            "MAVAI_LLM_BASE_URL must be set to the endpoint up to, not including, "
            "/chat/completions; MAVAI_LLM_ENDPOINT of baseltest includes it."
        )
    notes.append(
        f"The key is read from {PROVIDERS[name].key} alone."
        if PROVIDERS[name].key
        else "No key is sent."
    )
    service = _anthropic(found) if name == "anthropic" else _chat(found, PROVIDERS[name])
    return service, notes


def _chat(found: Mapping[str, Any], provider: Provider) -> dict[str, Any]:
    chat: dict[str, Any] = {
        "model": _escape_references(found["model"]) if "model" in found else "${MAVAI_LLM_MODEL}",
        "base_url": provider.base_url,
        "api_key_env": provider.key,
        "system": _escape_references(found["system-prompt"]),
    }
    if "temperature" in found:
        chat["temperature"] = found["temperature"]
    extra: dict[str, Any] = {}
    tokens = found.get("max-tokens", _MAX_TOKENS)
    if provider.max_tokens == "max_tokens":
        chat["max_tokens"] = tokens
    else:
        extra[provider.max_tokens] = tokens
    if "top-p" in found:
        extra["top_p"] = found["top-p"]
    if "response-schema" in found:
        schema = {"name": "response", "schema": _escape_references(found["response-schema"])}
        extra["response_format"] = {"type": "json_schema", "json_schema": schema}
    if extra:
        chat["extra"] = extra
    return {"chat": {**chat, **_deadline(found)}}


def _anthropic(found: Mapping[str, Any]) -> dict[str, Any]:
    for key in ("response-schema", "thinking"):
        if found.get(key, "none") != "none":
            raise ValueError(f"`{key}` of the provider anthropic cannot be carried over")
    system: Any = _escape_references(found["system-prompt"])
    if found.get("prompt-caching"):
        system = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
    body: dict[str, Any] = {
        "model": _escape_references(found["model"]) if "model" in found else "${MAVAI_LLM_MODEL}",
        "max_tokens": found.get("max-tokens", _MAX_TOKENS),
        "system": system,
        "messages": [{"role": "user", "content": "{input}"}],
    }
    for key, name in (("temperature", "temperature"), ("top-p", "top_p")):
        if key in found:
            body[name] = found[key]
    return {
        "http": {
            "url": PROVIDERS["anthropic"].base_url,
            "headers": {
                "x-api-key": "${ANTHROPIC_API_KEY}",
                "anthropic-version": "2023-06-01",
                "content-type": "application/json",
            },
            "body": body,
            "extract": "/content/0/text",
            **_deadline(found),
        }
    }


def _deadline(found: Mapping[str, Any]) -> dict[str, str]:
    return {"timeout": f"{found['deadline-ms']}ms"} if "deadline-ms" in found else {}


def _escape_references(value: Any) -> Any:
    """A value in which nothing is taken for a reference to the environment."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, dict):
        return {key: _escape_references(one) for key, one in value.items()}
    return [_escape_references(one) for one in value] if isinstance(value, list) else value


def model_input(given: Given, found: Mapping[str, Any], problems: Problems) -> Any:
    """An input as the model's service takes it, or None once it is said why there is none."""
    provider = PROVIDERS[found.get("provider", "")]
    allowed = found.get("capabilities", ())
    for media in given.media:
        if media.kind not in provider.media or f"{media.kind}-input" not in allowed:
            message = (
                f"`{media.kind}` is sent to a model only where its `capabilities` hold "
                f"`{media.kind}-input` and its provider takes it"
            )
            problems.add(given.node, message)
            return None
    if not given.is_message and isinstance(given.parts[0], list):
        problems.add(given.node, "a language model takes one input, not a list of several")
        return None
    is_anthropic = found.get("provider") == "anthropic"
    if not given.media:
        parts = [part if isinstance(part, str) else _json(part) for part in given.parts]
        if len(parts) == 1:
            return parts[0]
        content: list[Any] = [{"type": "text", "text": part} for part in parts]
    else:
        block = _anthropic_block if is_anthropic else _chat_block
        content = [
            {"type": "text", "text": part} if isinstance(part, str) else block(part)
            for part in given.parts
        ]
    return content if is_anthropic else [{"role": "user", "content": content}]


def _json(value: Any) -> str:
    import json

    return json.dumps(value)


def _chat_block(media: Media) -> dict[str, Any]:
    data = base64.b64encode(media.content).decode("ascii")
    uri = f"data:{_mime(media)};base64,{data}"
    if media.kind == "image":
        return {"type": "image_url", "image_url": {"url": uri}}
    name = media.path.rpartition("/")[2]
    if media.kind == "document":
        return {"type": "file", "file": {"filename": name, "file_data": uri}}
    ending = name.rpartition(".")[2] or "wav"
    return {"type": "input_audio", "input_audio": {"data": data, "format": ending}}


def _anthropic_block(media: Media) -> dict[str, Any]:
    data = base64.b64encode(media.content).decode("ascii")
    source = {"type": "base64", "media_type": _mime(media), "data": data}
    return {"type": media.kind, "source": source}


def _mime(media: Media) -> str:
    import mimetypes

    return mimetypes.guess_type(media.path)[0] or _MIME[media.kind]
