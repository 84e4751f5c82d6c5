"""Call a provider of promptfoo that is a Python file: `call_api(prompt, options, context)`."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trialwise.model.reply import Reply, Usage

__all__ = ["call_provider"]


def call_provider(
    beside: str, path: str, function: str, config: Mapping[str, Any]
) -> Callable[[Mapping[str, Any]], Reply]:
    """Return a service that calls a function of a provider's file.

    Args:
        beside: A file in the folder of the suite.
        path: The provider's file, from there.
        function: The name of the function.
        config: What promptfoo passes as `options["config"]`.
    """
    called = getattr(_load(Path(beside).parent / path), function)

    def ask(input: Mapping[str, Any]) -> Reply:  # noqa: A002 - the name that a service asks for
        given = called(input["prompt"], {"config": dict(config)}, {"vars": dict(input["vars"])})
        if inspect.isawaitable(given):
            given = asyncio.run(_wait(given))
        return _read_reply(given)

    return ask


async def _wait(given: Any) -> Any:
    return await given


def _load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"promptfoo_provider_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _read_reply(given: Any) -> Reply:
    """Read what a provider returns: `output`, or `error`, with tokens and cost."""
    if not isinstance(given, Mapping):
        return Reply(value=_show_output(given))
    if given.get("error"):
        raise RuntimeError(str(given["error"]))
    tokens = given.get("tokenUsage")
    known: Mapping[str, Any] = tokens if isinstance(tokens, Mapping) else {}
    counts = [known.get(name) for name in ("prompt", "completion")]
    usage = None
    if all(isinstance(one, int) and one >= 0 for one in counts):
        usage = Usage(input_tokens=int(counts[0] or 0), output_tokens=int(counts[1] or 0))
    cost = given.get("cost")
    is_known = isinstance(cost, int | float) and not isinstance(cost, bool) and cost >= 0
    return Reply(
        value=_show_output(given.get("output")),
        usage=usage,
        cost_usd=float(cost) if isinstance(cost, int | float) and is_known else None,
    )


def _show_output(output: Any) -> Any:
    """Return an output as promptfoo's assertions see it: an object as JSON."""
    return json.dumps(output, ensure_ascii=False) if isinstance(output, dict | list) else output
