"""Services as a suite describes them, built and checked before the first trial."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trialwise.errors import InvalidArgument, TrialwiseError
from trialwise.front.context import INVALID, Context, Invalid
from trialwise.front.functions import import_function
from trialwise.front.nodes import Node, shown
from trialwise.front.records import Fields

__all__ = ["build_service", "service_label"]

#: What a constructor calls an argument, and the key that gives it.
_RENAMED = {
    "argv": "run",
    "grace_s": "grace",
    "timeout_s": "timeout",
    "connect_timeout_s": "connect_timeout",
    "input_usd": "prices",
    "output_usd": "prices",
}
_OPENAI = "https://api.openai.com/v1"


def build_service(fields: Fields, context: Context) -> Any:
    """The service, or `INVALID` once its problems are reported."""
    if not fields.sound:
        return INVALID
    kind = _kind(fields)
    node = fields.at(kind)
    given = fields[kind]
    try:
        return _BUILDERS[kind](given, context)
    except InvalidArgument as error:
        # `headers['Authorization']` is about a header.
        argument = error.argument.partition("[")[0]
        key = _RENAMED.get(argument, argument)
        at = given.at(key) if isinstance(given, Fields) else node
        what = key if at is not node else kind
        # The value itself may be a secret that does not belong into the file at all.
        return context.refuse(at, f"`{what}` must {error.allowed}", hide=key == "headers")
    except (TrialwiseError, ValueError, OSError) as error:
        return context.refuse(node, f"`{kind}`: {error}")


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
    if kind == "chat":
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
    from trialwise.services.callable import CallableService

    function = import_function(given.at("function"), given["function"], context)
    if isinstance(function, Invalid):
        return INVALID
    return CallableService(function, **given.given("in_thread", "abandon_on_cancel"))


def _command(given: Fields, context: Context) -> Any:
    from trialwise.services.command import CommandService

    argv = _argv(given, context)
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


def _argv(given: Fields, context: Context) -> list[str] | Invalid:
    """The arguments; a text is split first and filled then, so that no value becomes two."""
    run = given["run"]
    if isinstance(run, list):
        return run
    import shlex

    node = given.at("run")
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
    from trialwise.services.http import HttpService

    headers = given.get("headers")
    return HttpService(
        given["url"],
        headers=headers.values if isinstance(headers, Fields) else None,
        environment=context.environment.variables,
        **given.given("method", "body", "extract", "infrastructure_statuses", "response_limit"),
        **_times(given),
    )


def _chat(given: Fields, context: Context) -> Any:
    from trialwise.services.openai_chat import ChatService, Prices

    options = given.given(
        "api_key_env",
        "system",
        "temperature",
        "max_tokens",
        "tools",
        "extra",
        "send_seed",
        "response_limit",
    )
    context.environment.note(options.get("api_key_env", "OPENAI_API_KEY"))
    if "prices" in given:
        prices = given["prices"]
        options["prices"] = Prices(input_usd=prices["input"], output_usd=prices["output"])
    return ChatService(
        given.get("base_url", _OPENAI),
        given["model"],
        environment=context.environment.variables,
        **options,
        **_times(given),
    )


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
    "replay": _replay,
}
