"""Services as a suite describes them, built and checked before the first trial."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trialwise.declarations.structures import Fields
from trialwise.declarations.written import INVALID, Invalid
from trialwise.errors import InvalidArgument, TrialwiseError
from trialwise.suite.function_imports import import_function
from trialwise.suite.nodes import Node, shown
from trialwise.suite.reading_context import Context

__all__ = ["build_service", "service_label"]

#: What a constructor calls an argument, and the key that gives it.
_RENAMED = {
    "argv": "run",
    "grace_s": "grace",
    "timeout_s": "timeout",
    "connect_timeout_s": "connect_timeout",
    "tool_timeout_s": "tool_timeout",
    "start_timeout_s": "start_timeout",
    "input_usd": "prices",
    "output_usd": "prices",
}
_OPENAI = "https://api.openai.com/v1"


def build_service(fields: Fields, context: Context, *, needed: bool = False) -> Any:
    """The service, or `INVALID` once its problems are reported.

    Args:
        fields: The service's.
        context: The suite being read.
        needed: Whether it is called although something else stands for what is under test.
    """
    if not fields.sound:
        return INVALID
    kind = _kind(fields)
    node = fields.at(kind)
    given = fields[kind]
    if kind in ("chat", "agent"):
        # Made or not, its key is to be kept out of records.
        context.environment.note(given.get("api_key_env", "OPENAI_API_KEY"))
    if context.without_services and not needed:
        return None
    try:
        return _BUILDERS[kind](given, context)
    except InvalidArgument as error:
        return _refused(error, given if isinstance(given, Fields) else None, node, kind, context)
    except (TrialwiseError, ValueError, OSError) as error:
        return context.refuse(node, f"`{kind}`: {error}")


def _refused(
    error: InvalidArgument, given: Fields | None, node: Node, kind: str, context: Context
) -> Invalid:
    """Report what a constructor refuses, at the key that gives it."""
    # `headers['Authorization']` is about a header.
    argument = error.argument.partition("[")[0]
    key = _RENAMED.get(argument, argument)
    at = node if given is None else given.at(key)
    what = key if at is not node else kind
    # The value itself may be a secret that does not belong into the file at all.
    return context.refuse(at, f"`{what}` must {error.allowed}", hide=key == "headers")


def service_label(fields: Fields) -> str:
    """What a service is called where nobody named it.

    It is what was written, the same on every machine and with every environment, since baselines
    are found by it.
    """
    kind = _kind(fields)
    given = fields.get(kind)
    if kind == "replay":
        return Path(_written(fields.at(kind))).stem
    if kind == "python":
        return str(given["function"])
    if kind in ("chat", "agent"):
        return _written(given.at("model"))
    if kind == "http":
        url = _written(given.at("url"))
        return (url.partition("://")[2] or url).partition("/")[0]
    run = given.at("run")
    words = [_written(item) for item in run.items()] if run.is_list else _written(run).split()
    return Path(words[0]).name


def _written(node: Node) -> str:
    """A text as it stands in the file, with the names of variables for their values."""
    return re.sub(r"\$\{(\w+)[^}]*\}", r"\1", str(node.value))


def _kind(fields: Fields) -> str:
    return next(name for name in _BUILDERS if name in fields.nodes)


def _python(given: Fields, context: Context) -> Any:
    from trialwise.services.python_function import CallableService

    function = import_function(given.at("function"), given["function"], context)
    if isinstance(function, Invalid):
        return INVALID
    if "model" in given:
        function = _for_model(function, given["model"])
    return CallableService(function, **given.given("in_thread", "abandon_on_cancel"))


def _for_model(function: Callable[..., Any], model: str) -> Callable[..., Any]:
    """A function that is given the model of its contract."""
    from functools import partial
    from inspect import signature

    if "model" not in signature(function).parameters:
        allowed = "take a parameter `model`, since the contract has `models`"
        raise InvalidArgument("function", function, allowed)
    return partial(function, model=model)


def _command(given: Fields, context: Context) -> Any:
    from trialwise.services.programs import CommandService

    argv = _argv(given, "run", context)
    if isinstance(argv, Invalid):
        return INVALID
    options = given.given(
        "input_via", "parse_json", "strip_newline", "inherit_env", "output_limit", "stderr_limit"
    )
    text = "\n".join(argv)
    if "input_via" not in options:
        if "{scenario_file}" in text:
            options["input_via"] = "file"
        elif "{input}" not in text:
            advice = 'put "{input}" into an argument, or say `input_via: stdin`'
            return context.refuse(
                given.at("run"), f"the input does not reach the command: {advice}"
            )
    if "grace" in given:
        options["grace_s"] = given["grace"]
    cwd = context.folder.resolve() / given.get("cwd", ".")
    if not cwd.is_dir():
        return context.refuse(given.at("cwd"), "`cwd` must be a folder that exists")
    env = given.get("env")
    return CommandService(
        argv,
        cwd=cwd,
        env=env.values if isinstance(env, Fields) else None,
        **options,
    )


def _argv(given: Fields, key: str, context: Context) -> list[str] | Invalid:
    """The arguments; a text is split first and filled then, so that no value becomes two."""
    run = given[key]
    if isinstance(run, list):
        return run
    import shlex

    node = given.at(key)
    try:
        words = shlex.split(run)
    except ValueError as error:
        message = f"`command` must be a command with its quotes closed ({error}), got {shown(node)}"
        return context.refuse(node, message)
    argv = [context.environment.filled(node, word) for word in words]
    found = [word for word in argv if word is not None]
    if not found:
        return context.refuse(node, "`command` must name a program")
    return found if len(found) == len(argv) else INVALID


def _http(given: Fields, context: Context) -> Any:
    from trialwise.services.http_endpoint import HttpService

    headers = given.get("headers")
    return HttpService(
        given["url"],
        headers=headers.values if isinstance(headers, Fields) else None,
        environment=context.environment.variables,
        **given.given("method", "body", "extract", "infrastructure_statuses", "response_limit"),
        **_times(given),
    )


def _chat(given: Fields, context: Context) -> Any:
    from trialwise.services.openai_chat import ChatService

    return ChatService(
        given.get("base_url", _OPENAI),
        given["model"],
        environment=context.environment.variables,
        **_endpoint(given),
        **given.given("tools"),
        **_times(given),
    )


def _agent(given: Fields, context: Context) -> Any:
    from trialwise.services.agent import AgentService

    servers = {name: _server(server, context) for name, server in given["servers"].values.items()}
    if INVALID in servers.values():
        return INVALID
    waits = given.given("tool_timeout", "start_timeout")
    return AgentService(
        given.get("base_url", _OPENAI),
        given["model"],
        servers=servers,
        environment=context.environment.variables,
        **_endpoint(given),
        **given.given("max_turns", "max_tool_calls", "result_limit"),
        **{f"{name}_s": value for name, value in waits.items()},
        **_times(given),
    )


def _endpoint(given: Fields) -> dict[str, Any]:
    """What a chat and an agent tell of their model."""
    options = given.given(
        "api_key_env",
        "system",
        "temperature",
        "max_tokens",
        "extra",
        "send_seed",
        "response_limit",
    )
    if "prices" in given:
        from trialwise.services.openai_chat import Prices

        prices = given["prices"]
        options["prices"] = Prices(input_usd=prices["input"], output_usd=prices["output"])
    return options


def _server(given: Fields, context: Context) -> Any:
    """An MCP server, or `INVALID` once what is wrong with it is reported."""
    from trialwise.services.agent import McpServer

    options = given.given("url", "inherit_env", "tools")
    for name in ("env", "headers"):
        if isinstance(given.get(name), Fields):
            options[name] = given[name].values
    if "command" in given:
        command = _argv(given, "command", context)
        if isinstance(command, Invalid):
            return INVALID
        cwd = context.folder.resolve() / given.get("cwd", ".")
        if not cwd.is_dir():
            return context.refuse(given.at("cwd"), "`cwd` must be a folder that exists")
        options |= {"command": command, "cwd": str(cwd)}
    try:
        return McpServer(**options)
    except InvalidArgument as error:
        return _refused(error, given, given.node, "server", context)


def _replay(given: str, context: Context) -> Any:
    from trialwise.services.replay import ReplayService

    return ReplayService(context.file(given))


def _times(given: Fields) -> dict[str, Any]:
    times = given.given("timeout", "connect_timeout")
    return {f"{name}_s": value for name, value in times.items()}


_BUILDERS: dict[str, Callable[[Any, Context], Any]] = {
    "python": _python,
    "command": _command,
    "http": _http,
    "chat": _chat,
    "agent": _agent,
    "replay": _replay,
}
