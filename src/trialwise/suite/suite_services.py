"""The services that a contract may name: their keys, and how they are built.

Which keys a service has is declared by its constructor. A service is loaded when a suite names it,
and built and checked before the first trial.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from trialwise.declarations.resources import PythonFunction, SecretName
from trialwise.declarations.scalars import Schema
from trialwise.declarations.signatures import DeclaredKind, build_declared, find_refused
from trialwise.declarations.structures import Fields, Key, More, Record, Short
from trialwise.declarations.written import INVALID, Invalid, Reader, Written, show_value
from trialwise.errors import InvalidArgument, TrialwiseError
from trialwise.extensions import SERVICES, extension_names
from trialwise.services.service_factors import ServiceDeclaration, find_service, service_names
from trialwise.suite.reading_context import Context
from trialwise.suite.yaml_reading import Node


class DeclaredService(DeclaredKind[ServiceDeclaration]):
    """The keys of a declared service, or its main one alone."""

    def __init__(self, name: str) -> None:
        super().__init__(name, find_service)

    @property
    def expected(self) -> str:  # type: ignore[override]
        """What it is, as the rest of a sentence that starts with "must be"."""
        return self.kind.expected

    @property
    def kind(self) -> Record | Short:
        """How it is written."""
        record = Record(self.name, self.keys, doc=self.doc)
        return Short(record) if self.declared.is_short else record

    def read(self, node: Written, label: str, reader: Reader) -> Fields | Invalid:
        """Read what is said of it."""
        return self.kind.read(node, label, reader)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """Return the same."""
        return self.kind.schema(defs)


def _find_key(name: str) -> Key | None:
    return None if find_service(name) is None else Key(name, DeclaredService(name))


_NAMES = service_names()
SERVICE = Record(
    "service",
    tuple(Key(name, DeclaredService(name)) for name in _NAMES),
    one_of=((*_NAMES, "*"),),
    doc="What is under test.",
    more=More(_find_key, lambda: extension_names(SERVICES)),
)


def build_service(fields: Fields, context: Context, *, needed: bool = False) -> Any:
    """Build the service, or `INVALID` once its problems are reported.

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
            context.environment.note(given.get(key.name, _usual_key(key, given)))
    if context.without_services and not needed:
        return None
    try:
        built = build_declared(_for_model(declared, given), declared.keys, given, context)
        if getattr(built, "takes_nothing", False):
            where = show_value(given.at(declared.main.name))
            message = f"{where} takes no input: give the function a parameter for it"
            return context.refuse(node, message)
        return built
    except InvalidArgument as error:
        at, what = find_refused(error, declared.keys, given, declared.name)
        # The value itself may be a secret that does not belong into the file at all.
        return context.refuse(at, f"`{what}` must {error.allowed}", hide=what == "headers")
    except (TrialwiseError, ValueError, OSError) as error:
        return context.refuse(node, f"`{declared.name}`: {error}")


def _usual_key(key: Key, given: Fields) -> Any:
    """Return the variable that a service reads where nobody names one: that of its API."""
    if "api" not in given:
        return key.fallback
    from trialwise.services.model_apis import find_api

    return find_api(given["api"]).usual_key


def service_label(fields: Fields) -> str:
    """Return what a service is called where nobody named it.

    It is what was written, the same on every machine and with every environment, since baselines
    are found by it.
    """
    declared = _declaration(fields)
    key = declared.main
    node = fields[declared.name].at(key.name)
    return key.kind.label(_show_written(next(node.items()) if node.is_list else node))


def hash_service(fields: Fields, model: str | None) -> str:
    """Return the kind of a service and a hash of what is written about it.

    Args:
        fields: The service's.
        model: The model it is for, where there are several.
    """
    from hashlib import sha256

    text = repr((_list_values(fields), model))
    return f"{_declaration(fields).name}:{sha256(text.encode()).hexdigest()[:16]}"


def _list_values(value: Any) -> Any:
    """Values without their places in the file."""
    if isinstance(value, Fields):
        value = value.values
    if isinstance(value, dict):
        return {str(name): _list_values(one) for name, one in value.items()}
    return [_list_values(one) for one in value] if isinstance(value, list) else str(value)


def _declaration(fields: Fields) -> ServiceDeclaration:
    declared = find_service(next(iter(fields.nodes)))
    assert declared is not None
    return declared


def _show_written(node: Node) -> str:
    """Show a text as it stands in the file, with the names of variables for their values."""
    return re.sub(r"\$\{(\w+)[^}]*\}", r"\1", str(node.value))


def _for_model(declared: ServiceDeclaration, given: Fields) -> Callable[..., Any]:
    """Return the constructor, where a function is given the model of its contract first."""
    function = next((key for key in declared.keys if isinstance(key.kind, PythonFunction)), None)
    if function is None or "model" not in given:
        return declared.constructor
    from functools import partial
    from inspect import signature

    def construct(**arguments: Any) -> Any:
        called = arguments[function.field]
        if "model" not in signature(called).parameters:
            if not given["needs_model"]:
                return declared.constructor(**arguments)
            allowed = "take a parameter `model`, since the contract has `models`"
            raise InvalidArgument(function.field, called, allowed)
        arguments[function.field] = partial(called, model=given["model"])
        return declared.constructor(**arguments)

    return construct
