"""Services as a suite describes them, built and checked before the first trial."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from trialwise.declarations.building import build_declared, find_refused
from trialwise.declarations.resources import PythonFunction, SecretName
from trialwise.declarations.structures import Fields
from trialwise.declarations.written import INVALID
from trialwise.errors import InvalidArgument, TrialwiseError
from trialwise.services.service_declarations import ServiceDeclaration, find_service
from trialwise.suite.nodes import Node
from trialwise.suite.reading_context import Context

__all__ = ["build_service", "service_label"]


def build_service(fields: Fields, context: Context, *, needed: bool = False) -> Any:
    """The service, or `INVALID` once its problems are reported.

    Args:
        fields: The service's.
        context: The suite being read.
        needed: Whether it is called although something else stands for what is under test.
    """
    if not fields.sound:
        return INVALID
    declared = _declaration(fields)
    node, given = fields.at(declared.name), fields[declared.name]
    for key in declared.keys:
        if isinstance(key.kind, SecretName):
            # Made or not, its key is to be kept out of records.
            context.environment.note(given.get(key.name, key.fallback))
    if context.without_services and not needed:
        return None
    try:
        return build_declared(_for_model(declared, given), declared.keys, given, context)
    except InvalidArgument as error:
        at, what = find_refused(error, declared.keys, given, declared.name)
        # The value itself may be a secret that does not belong into the file at all.
        return context.refuse(at, f"`{what}` must {error.allowed}", hide=what == "headers")
    except (TrialwiseError, ValueError, OSError) as error:
        return context.refuse(node, f"`{declared.name}`: {error}")


def service_label(fields: Fields) -> str:
    """What a service is called where nobody named it.

    It is what was written, the same on every machine and with every environment, since baselines
    are found by it.
    """
    declared = _declaration(fields)
    key = declared.main
    node = fields[declared.name].at(key.name)
    return key.kind.label(_show_written(next(node.items()) if node.is_list else node))


def _declaration(fields: Fields) -> ServiceDeclaration:
    declared = find_service(next(iter(fields.nodes)))
    assert declared is not None
    return declared


def _show_written(node: Node) -> str:
    """A text as it stands in the file, with the names of variables for their values."""
    return re.sub(r"\$\{(\w+)[^}]*\}", r"\1", str(node.value))


def _for_model(declared: ServiceDeclaration, given: Fields) -> Callable[..., Any]:
    """The constructor, where a function is given the model of its contract first."""
    function = next((key for key in declared.keys if isinstance(key.kind, PythonFunction)), None)
    if function is None or "model" not in given:
        return declared.constructor
    from functools import partial
    from inspect import signature

    def construct(**arguments: Any) -> Any:
        called = arguments[function.field]
        if "model" not in signature(called).parameters:
            allowed = "take a parameter `model`, since the contract has `models`"
            raise InvalidArgument(function.field, called, allowed)
        arguments[function.field] = partial(called, model=given["model"])
        return declared.constructor(**arguments)

    return construct
