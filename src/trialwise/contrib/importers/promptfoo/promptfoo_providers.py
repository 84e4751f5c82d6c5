"""A provider of promptfoo as a service, and what form of input the service takes."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from trialwise.contrib.importers.import_notes import Notes
from trialwise.contrib.importers.model_endpoints import ENDPOINTS, Endpoint
from trialwise.contrib.importers.named_files import NamedFile
from trialwise.contrib.importers.promptfoo.promptfoo_prompts import (
    Prompt,
    TemplateNotCarried,
    find_variables,
    rename_variables,
)
from trialwise.contrib.importers.unwritten_functions import FunctionModule
from trialwise.contrib.importers.yaml_mappings import is_number, read_yaml_text
from trialwise.declarations.written import Node
from trialwise.regular_files import FileUnreadable
from trialwise.suite.suite_problems import Problems
from trialwise.suite.yaml_reading import plain

__all__ = ["Form", "Provider", "Providers"]

#: promptfoo's own settings of a chat model, unless a file says otherwise.
_TEMPERATURE, _MAX_TOKENS = 0, 1024
#: Models that take neither of them.
_REASONING = re.compile(r"(?:o[134]|gpt-5)\b|claude-(?:opus|sonnet)-[5-9]")
#: Fields of a request that have the same name in a configuration.
_REQUEST_FIELDS = (
    *("top_p", "frequency_penalty", "presence_penalty", "seed", "stop", "response_format"),
    *("reasoning_effort", "max_completion_tokens", "tool_choice", "parallel_tool_calls"),
)
_BASE_URLS = ("apiBaseUrl", "baseUrl", "baseURL")
#: Words between the vendor and the model that mean a chat.
_CHATS = ("chat", "messages", "responses")
_NO_CHATS = (
    *("assistant", "completion", "embedding", "embeddings", "image", "realtime", "moderation"),
    *("claude-agent-sdk", "claude-code", "speech", "transcription", "video", "codex-sdk"),
)
_VENDORS = {**{name: name for name in ENDPOINTS}, "palm": "google", "grok": "xai"}
_HTTP_KEYS = (
    *("url", "method", "headers", "body", "transformResponse", "responseParser", "queryParams"),
)
_POINTER = re.compile(r"json((?:\??\.[A-Za-z_$][\w$]*|\[\d+\]|\[['\"][^'\"\]]+['\"]\])*)")
_STEP = re.compile(r"\.([A-Za-z_$][\w$]*)|\[(\d+)\]|\[['\"]([^'\"\]]+)['\"]\]")
_ENVIRONMENT = re.compile(r"\{\{\s*env\.([A-Za-z_]\w*)\s*\}\}|\$\{([A-Za-z_]\w*)\}")


class Form(Enum):
    """What a service gets of a test."""

    VARIABLES = "the variables, which its prompt names"
    PROMPT = "the prompt with the variables in it"
    VARIABLE = "one variable"
    NOTHING_KNOWN = "the prompt and the variables"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A provider: its name, its service, and what the service gets."""

    label: str
    where: str
    form: Form
    service: dict[str, Any]
    variable: str = ""
    prompts: tuple[str, ...] = ()
    """The labels of the prompts it is asked, where not all."""

    def is_asked(self, prompt: Prompt) -> bool:
        """Return whether the provider gets a prompt, by its label or the beginning of it."""
        return not self.prompts or any(
            prompt.label == one
            or prompt.label.startswith(f"{one}:")
            or (one.endswith("*") and prompt.label.startswith(one[:-1]))
            for one in self.prompts
        )

    def describe_service(self, prompt: Prompt) -> dict[str, Any]:
        """Return the service for a prompt, which a `chat` service holds itself."""
        if self.form is not Form.VARIABLES:
            return self.service
        given: Any = rename_variables(prompt.text)
        if prompt.messages:
            given = [
                {**one, "content": rename_variables(str(one["content"]))} for one in prompt.messages
            ]
        return {"chat": {**self.service["chat"], "prompt": _keep_dollars(given)}}


class _NotCarried(Exception):
    """A provider that no service here stands for."""


@dataclass(slots=True)
class Providers:
    """Reads the providers of a file."""

    folder: Path
    notes: Notes
    functions: FunctionModule
    problems: Problems

    def read(self, node: Node) -> list[Provider]:
        """Read `providers` or `targets`."""
        items = list(node.items()) if node.is_list else [node]
        found: list[Provider] = []
        for item in items:
            where = f"line {item.line + 1}"
            found += [self._read_one(one, where) for one in self._unfold(plain(item), where)]
        names: dict[str, int] = {}
        unique = []
        for one in found:
            names[one.label] = names.get(one.label, 0) + 1
            number = names[one.label]
            unique.append(one if number == 1 else replace(one, label=f"{one.label} {number}"))
        return unique

    def find_juror(self, given: Any, where: str) -> dict[str, Any]:
        """Return the model that grades by a rubric."""
        name, config = _name_and_config(given)
        if name:
            try:
                return self._chat(name, config, where)
            except _NotCarried as error:
                self.notes.leave_out(f"the grader `{name[:60]}`: {error}", where)
        self.notes.add(
            "The grader is `gpt-4.1`; name the model that you want as the juror of the judge", where
        )
        return ENDPOINTS["openai"].describe_chat("gpt-4.1")

    def _unfold(self, given: Any, where: str) -> list[Any]:
        """Return a provider, or those of a file that is named in its place."""
        name, _ = _name_and_config(given)
        if not (name.startswith("file://") and name.endswith((".yaml", ".yml", ".json"))):
            return [given]
        file = NamedFile(self.folder, name.removeprefix("file://"))
        try:
            root = read_yaml_text(file.path, file.read(), self.problems)
        except FileUnreadable as error:
            self.notes.leave_out(f"the provider {name}: it {error.reason}", where)
            return []
        found = None if root is None else plain(root)
        return found if isinstance(found, list) else [found]

    def _read_one(self, given: Any, where: str) -> Provider:
        name, config = _name_and_config(given)
        label = given.get("label") if isinstance(given, dict) else None
        shared: dict[str, Any] = {"label": str(label or name or "provider"), "where": where}
        if isinstance(given, dict) and isinstance(given.get("prompts"), list):
            shared["prompts"] = tuple(str(one) for one in given["prompts"])
        try:
            if isinstance(given, dict) and (given.get("transform") or config.get("transform")):
                raise _NotCarried("a function transforms its output")
            return self._convert(name, config, where, shared)
        except (_NotCarried, TemplateNotCarried) as error:
            function = self.functions.add_stub(
                "provider",
                "input",
                "Ask the provider and return its reply; `input` has `prompt` and `vars`.",
                f"{where}:\n{json.dumps(given, ensure_ascii=False, indent=2, default=str)}",
            )
            self.notes.leave_out(
                f"the provider `{name[:60]}`: {error}. Write `{function.partition(':')[2]}` in "
                f"{self.functions.name}.py; until then every trial fails",
                where,
            )
            return Provider(form=Form.NOTHING_KNOWN, service={"python": function}, **shared)

    def _convert(
        self, name: str, config: dict[str, Any], where: str, shared: dict[str, Any]
    ) -> Provider:
        if name == "echo":
            service: dict[str, Any] = {"command": {"run": ["printf", "%s", "{input}"]}}
            return Provider(form=Form.PROMPT, service=service, **shared)
        if name.startswith("exec:"):
            return Provider(form=Form.PROMPT, service=self._command(name, config), **shared)
        if name in ("http", "https") or name.startswith(("http://", "https://")):
            return self._http(name, config, shared)
        if name.startswith("python:") or re.fullmatch(r"file://.+\.py(:\w+)?", name):
            service = self._python(name, config)
            return Provider(form=Form.NOTHING_KNOWN, service=service, **shared)
        return Provider(form=Form.VARIABLES, service=self._chat(name, config, where), **shared)

    def _command(self, name: str, config: dict[str, Any]) -> dict[str, Any]:
        try:
            words = shlex.split(name.removeprefix("exec:").strip())
        except ValueError as error:
            raise _NotCarried(f"its command cannot be read ({error})") from None
        if not words:
            raise _NotCarried("it has no command")
        self.notes.add(
            "A command of `exec:` gets the prompt and its options as arguments, as in promptfoo; "
            "the third argument, the context, is an empty object here"
        )
        options = json.dumps({"config": config} if config else {}, separators=(",", ":"))
        return {"command": {"run": [*map(_keep_dollars, words), "{input}", options, "{}"]}}

    def _python(self, name: str, config: dict[str, Any]) -> dict[str, Any]:
        """Return a function that calls the provider's own."""
        path = name.removeprefix("python:").removeprefix("file://")
        path, _, function = path.partition(".py:")
        path = path if path.endswith(".py") else f"{path}.py"
        module = "trialwise.contrib.importers.promptfoo.provider_calls"
        made = self.functions.add_value(
            "provider",
            f"call_provider(__file__, {path!r}, {function or 'call_api'!r}, {config!r})",
            f"from {module} import call_provider",
        )
        return {"python": made}

    def _http(self, name: str, config: dict[str, Any], shared: dict[str, Any]) -> Provider:
        extra = [key for key in config if key not in _HTTP_KEYS]
        if extra:
            raise _NotCarried(f"`{extra[0][:60]}` of its configuration")
        url = config.get("url", name)
        if not isinstance(url, str) or not url.startswith(("http://", "https://", "{{")):
            raise _NotCarried("it has no `url`")
        parameters = config.get("queryParams")
        if parameters:
            raise _NotCarried("`queryParams` of its configuration")
        body = config.get("body")
        if isinstance(body, str):
            body = _parse_body(body)
        headers = config.get("headers") or {}
        if not isinstance(headers, dict):
            raise _NotCarried("its `headers` are not a mapping")
        texts = [url, json.dumps(body), *map(str, headers.values())]
        names = [one for text in texts for one in find_variables(_without_environment(text))]
        used = list(dict.fromkeys(names))
        if len(used) > 1:
            raise _NotCarried(f"its request names {len(used)} variables: {', '.join(used)[:80]}")
        http: dict[str, Any] = {"url": _fill(url, used)}
        method = str(config.get("method") or ("POST" if body is not None else "GET"))
        if method != "POST":
            http["method"] = method
        if headers:
            http["headers"] = {str(key): _fill(str(one), used) for key, one in headers.items()}
        if body is not None:
            http["body"] = _fill(body, used)
        pointer = _read_pointer(config.get("transformResponse") or config.get("responseParser"))
        if pointer:
            http["extract"] = pointer
        form = Form.PROMPT if used in ([], ["prompt"]) else Form.VARIABLE
        variable = "" if form is Form.PROMPT else used[0]
        return Provider(form=form, variable=variable, service={"http": http}, **shared)

    def _chat(self, name: str, config: dict[str, Any], where: str) -> dict[str, Any]:
        vendor, *rest = name.split(":")
        endpoint = ENDPOINTS.get(_VENDORS.get(vendor, ""))
        if endpoint is None or not rest:
            raise _NotCarried("no service here calls it")
        if rest[0] in _NO_CHATS:
            raise _NotCarried(f"`{rest[0]}` is not a chat")
        if len(rest) > 1 and rest[0] in _CHATS:
            if rest[0] == "responses":
                endpoint = replace(endpoint, api="responses")
            rest = rest[1:]
        model = ":".join(rest)
        if not model:
            raise _NotCarried("it names no model")
        return self._describe_chat(vendor, endpoint, model, config, where)

    def _describe_chat(
        self, vendor: str, endpoint: Endpoint, model: str, config: dict[str, Any], where: str
    ) -> dict[str, Any]:
        config = dict(config)
        for key in _BASE_URLS:
            url = config.pop(key, None)
            if isinstance(url, str):
                endpoint = replace(endpoint, base_url=_read_environment(url))
        variable = config.pop("apiKeyEnvar", None)
        if isinstance(variable, str):
            endpoint = replace(endpoint, api_key_env=variable)
        key = config.pop("apiKey", None)
        if key is not None:
            found = _ENVIRONMENT.fullmatch(str(key).strip())
            if found:
                endpoint = replace(endpoint, api_key_env=found[1] or found[2])
            else:
                self.notes.leave_out(
                    f"an `apiKey` that is written down: set {endpoint.api_key_env}", where
                )
        settings: dict[str, Any] = {}
        is_default = vendor in ("openai", "anthropic") and not _REASONING.match(model)
        temperature = config.pop("temperature", _TEMPERATURE if is_default else None)
        if is_number(temperature):
            settings["temperature"] = temperature
        limit = config.pop("max_tokens", _MAX_TOKENS if is_default else None)
        if isinstance(limit, int) and limit > 0:
            settings["max_tokens"] = limit
        tools = config.pop("tools", None)
        if isinstance(tools, list) and all(isinstance(one, dict) for one in tools):
            settings["tools"] = tools
        elif tools is not None:
            self.notes.leave_out("`tools` that are not a list", where)
        if extra := {name: config.pop(name) for name in _REQUEST_FIELDS if name in config}:
            settings["extra"] = extra
        for name in config:
            self.notes.leave_out(f"`{name[:60]}` of a provider's configuration", where)
        return endpoint.describe_chat(model, **_keep_dollars(settings))


def _name_and_config(given: Any) -> tuple[str, dict[str, Any]]:
    """Return the name of a provider and its configuration, however it is written."""
    if isinstance(given, str):
        return given.strip(), {}
    if not isinstance(given, dict):
        return "", {}
    if "id" not in given and len(given) == 1:
        ((name, options),) = given.items()
        config = options.get("config") if isinstance(options, dict) else None
        return str(name), dict(config) if isinstance(config, dict) else {}
    config = given.get("config")
    return str(given.get("id") or "").strip(), dict(config) if isinstance(config, dict) else {}


def _parse_body(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _read_pointer(given: Any) -> str:
    """Return the JSON Pointer of an expression such as `json.choices[0].text`."""
    if given in (None, "", "text"):
        return ""
    match = _POINTER.fullmatch(given.strip()) if isinstance(given, str) else None
    if match is None:
        raise _NotCarried("a function reads its response")
    steps = [a or b or c for a, b, c in _STEP.findall(match[1])]
    return "".join(f"/{one.replace('~', '~0').replace('/', '~1')}" for one in steps)


def _without_environment(text: str) -> str:
    return _ENVIRONMENT.sub("", text)


def _read_environment(text: str) -> str:
    """Return a text with variables of the environment as a suite writes them."""
    return _ENVIRONMENT.sub(lambda match: f"${{{match[1] or match[2]}}}", text)


def _fill(given: Any, used: list[str]) -> Any:
    """Return a part of a request with the one variable as `{input}`."""
    if isinstance(given, Mapping):
        return {key: _fill(one, used) for key, one in given.items()}
    if isinstance(given, list):
        return [_fill(one, used) for one in given]
    if not isinstance(given, str):
        return given
    if re.search(r"\{(?:input|index|seed|scenario_file)\}", given):
        raise _NotCarried("its request holds a placeholder of trialwise")
    text = _read_environment(given)
    for name in used:
        text = re.sub(rf"\{{\{{-?\s*{re.escape(name)}\s*-?\}}\}}", "{input}", text)
    return text


def _keep_dollars(given: Any) -> Any:
    """Escape `${` in every text of a value, so that a suite does not read it as a variable."""
    if isinstance(given, Mapping):
        return {key: _keep_dollars(one) for key, one in given.items()}
    if isinstance(given, list):
        return [_keep_dollars(one) for one in given]
    return given.replace("${", "$${") if isinstance(given, str) else given
