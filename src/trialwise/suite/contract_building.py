"""One contract of a suite: its own keys over those at the top, made into the model's nouns."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from trialwise.declarations.structures import Fields
from trialwise.declarations.written import INVALID, Invalid, find_nearest
from trialwise.model.contract import Contract
from trialwise.suite.contract_parts import build_parts
from trialwise.suite.criterion_building import build_criteria, build_samplings, check_sampling
from trialwise.suite.function_imports import import_function
from trialwise.suite.gate_building import check_runs
from trialwise.suite.loaded_suite import SuiteContract
from trialwise.suite.model_making import make_model
from trialwise.suite.model_matrix import models_of, name_cell, with_model
from trialwise.suite.nodes import Node
from trialwise.suite.option_building import build_options, names_of
from trialwise.suite.reading_context import Context
from trialwise.suite.service_building import build_service, service_label

__all__ = ["Built", "Top", "build_contract"]

#: A key of one's own takes the place of the other, too, that the top may hold.
_INSTEAD = {
    "trials": "max_trials",
    "max_trials": "trials",
    "inputs": "samplings",
    "samplings": "inputs",
}
#: What one contract is called says nothing about the others.
_NOT_SHARED = ("name", "description")


class Built(NamedTuple):
    """A contract, and the node that names it or else holds it."""

    contract: SuiteContract
    node: Node


class _Service(NamedTuple):
    """What is under test, what it is called and the model it is for."""

    service: Any
    label: str
    model: str | None


class Top:
    """The top of a suite: what its contracts share, and the services built so far."""

    def __init__(self, fields: Fields, context: Context) -> None:
        self.fields = fields
        self._context = context
        self._services: dict[tuple[int, str | None], Any] = {}

    def service(self, fields: Fields, model: str | None, node: Node) -> Any:
        """A service, built once for each model however many contracts share it.

        Args:
            fields: The service's.
            model: The model it is for, where there are several.
            node: Where the models are listed.
        """
        key = id(fields), model
        if key not in self._services:
            given = fields if model is None else with_model(fields, model, node, self._context)
            self._services[key] = INVALID if given is None else build_service(given, self._context)
        return self._services[key]

    def named_service(self, name: str, node: Node) -> Fields | Invalid:
        """The service of a name."""
        services = self.fields.get("services")
        if isinstance(services, Fields) and name in services.nodes:
            found: Fields | Invalid = services.get(name, INVALID)
            return found
        known = list(services.nodes) if isinstance(services, Fields) else []
        close = find_nearest(name, known)
        hint = f"did you mean `{close}`?" if close else "describe it under `services`"
        if ":" in name:
            hint = f'a function is written `{{python: "{name}"}}`'
        return self._context.refuse(node, f"there is no service `{name}`; {hint}")


def build_contract(own: Fields | None, top: Top, context: Context) -> list[Built]:
    """A contract, or one for each of its models; none once its problems are reported.

    Args:
        own: Its own keys; None where the suite itself is the contract.
        top: The top of the suite.
        context: The suite being read.
    """
    before = len(context.problems)
    fields = top.fields if own is None else _overlaid(own, top.fields)
    services = _services(fields, top, context)
    samplings = build_samplings(fields, context)
    names = None if isinstance(samplings, Invalid) else list(samplings)
    criteria = build_criteria(fields, names, context)
    options = build_options(fields, names, context)
    parts = build_parts(fields, criteria, names, context) | {
        "activity": _activity(fields, context),
        "description": fields.get("description", ""),
    }
    factors = parts["factors"]
    if isinstance(latency := fields.get("latency"), Fields):
        check_sampling(latency, names, "`latency`", context)
    if len(context.problems) > before or not fields.sound:
        return []
    # A service that several contracts share is reported once.
    if services is None or isinstance(options, Invalid) or isinstance(samplings, Invalid):
        return []
    built: list[Built] = []
    for one in services:
        tags = names_of(fields, "tags")
        if one.model is not None:
            parts["factors"], tags = factors | {"model": one.model}, (*tags, one.model)
        else:
            parts["factors"] = factors
        name = name_cell(fields.get("name", one.label), one.model)
        contract = make_model(
            partial(Contract, name, one.service, criteria, sampling=samplings, **parts),
            fields,
            context,
        )
        if isinstance(contract, Invalid) or not check_runs(contract, options, fields, context):
            return []
        cell = SuiteContract(
            contract=contract, options=options, tags=tags, line=fields.node.line + 1
        )
        built.append(Built(cell, fields.at("name")))
    return built


def _overlaid(own: Fields, top: Fields) -> Fields:
    fields = Fields(own.node)
    # What is wrong at the top was reported there, and leaves nothing to build on.
    fields.sound = own.sound and top.sound
    for source, names in ((own, own.nodes), (top, _inherit_keys(own, top))):
        for name in names:
            value = source.values.get(name, INVALID)
            fields.put(name, source.keys[name], source.nodes[name], value)
    return fields


def _inherit_keys(own: Fields, top: Fields) -> list[str]:
    return [
        name
        for name in top.nodes
        if name not in _NOT_SHARED and name not in own.nodes and _INSTEAD.get(name) not in own.nodes
    ]


def _services(fields: Fields, top: Top, context: Context) -> list[_Service] | None:
    """The service for each model, or None once something is wrong with one."""
    if "service" not in fields.nodes:
        context.refuse(fields.node, "there is no `service`: say what is under test")
    found: list[_Service] = []
    for model in models_of(fields, context):
        service, label = _service(fields, model, top)
        if service is INVALID:
            return None
        found.append(_Service(service, label, model))
    return found


def _service(fields: Fields, model: str | None, top: Top) -> tuple[Any, str]:
    """The service and what it is called."""
    given, node = fields.get("service"), fields.at("models")
    if isinstance(given, str):
        found = top.named_service(given, fields.at("service"))
        return (top.service(found, model, node) if isinstance(found, Fields) else found), given
    if not isinstance(given, Fields):
        return INVALID, ""
    service = top.service(given, model, node)
    return service, "" if service is INVALID else service_label(given)


def _activity(fields: Fields, context: Context) -> Any:
    where = fields.get("activity")
    return None if where is None else import_function(fields.at("activity"), where, context)
