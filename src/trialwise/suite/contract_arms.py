"""The arms of a contract: variants of it that are compared with it and never run by themselves.

An arm says only what it changes. Its mappings are laid over those of the contract, key by key, as
in a JSON merge patch (RFC 7396): a value replaces the contract's, and null takes it away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trialwise.declarations.scalars import Kind, Schema
from trialwise.declarations.structures import Fields
from trialwise.declarations.written import Entries, Invalid, Node, Reader, suggest_name
from trialwise.extensions import SERVICES, extension_names
from trialwise.services.service_factors import ServiceDeclaration, find_service, service_names
from trialwise.suite.reading_context import Context
from trialwise.suite.suite_services import SERVICE

#: It stands between the name of a contract and that of its arm.
SEPARATOR = "/"


class ServiceChange(Kind):
    """What an arm changes in a service: another one by name, or some of its keys.

    It is read as a service once it is laid over the contract's own.
    """

    expected = "the name of a service, or keys of a service that change"
    spelled = "service"

    def read(self, node: Node, label: str, reader: Reader) -> Node | Invalid:
        """Return the node itself."""
        if node.is_list or (node.is_scalar and not isinstance(node.value, str)):
            return self.refuse(node, label, reader)
        return node

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """Return the services with their keys, of which none is required."""
        installed = extension_names(SERVICES) if getattr(defs, "installed", False) else ()
        services = {name: _describe_change(name) for name in (*service_names(), *installed)}
        change = {
            "type": "object",
            "properties": {**services, "include": {"$ref": "#/$defs/includes"}},
            "additionalProperties": False,
            "minProperties": 1,
        }
        return {"anyOf": [{"type": "string", "pattern": r"\S"}, change]}


def _describe_change(name: str) -> Schema:
    declared = find_service(name)
    assert declared is not None
    keys: Schema = {key.name: {"description": key.doc} for key in declared.keys}
    change: Schema = {
        "type": "object",
        "properties": {**keys, "include": {"$ref": "#/$defs/includes"}},
        "additionalProperties": False,
    }
    if not declared.is_short:
        return change
    return {"anyOf": [{"type": ["string", "array"]}, change]}


def overlay_arm(
    fields: Fields, arm: Fields, services: Mapping[str, Node], context: Context
) -> Fields | None:
    """Return the keys of a contract as an arm changes them; None once a problem is reported.

    Args:
        fields: The contract's, with those of the top.
        arm: What the arm changes.
        services: The suite's services by name, as they are written.
        context: The suite being read.
    """
    # A mistake is reported where it stands, and the arm is not read any further.
    before = len(context.problems)
    changed = fields.copy(arm.node)
    changed.take(arm, arm.nodes)
    if "service" in arm.nodes:
        changed.values["service"] = _change_service(fields, arm, services, context)
    ours, theirs = fields.get("factors"), arm.get("factors")
    if isinstance(ours, Fields) and isinstance(theirs, Fields):
        changed.values["factors"] = joined = ours.copy(theirs.node)
        joined.take(theirs, theirs.values)
    return None if len(context.problems) > before else changed


def check_arm_names(arms: Fields, context: Context) -> None:
    """Refuse names that no command could tell from another."""
    for name, node in arms.keys.items():
        # `agent/short` names the arm of a contract, and would name two things.
        if SEPARATOR in name or name != name.strip():
            context.refuse(node, "the name of an arm has no `/` and no blanks around it")


def _change_service(
    fields: Fields, arm: Fields, services: Mapping[str, Node], context: Context
) -> Any:
    """Return the arm's service: the name of another one, or what is read once it is changed."""
    change: Node = arm.nodes["service"]
    if not change.is_mapping:
        return change.value
    base = fields.nodes.get("service")
    if base is not None and isinstance(base.value, str):
        base = services.get(base.value)  # a name that is not there is reported by the contract
    # There is nothing to lay the change over, so it has to be a whole service.
    if base is None or not base.is_mapping:
        return SERVICE.read(change, "`service`", context)
    return SERVICE.read(_lay_over_service(base, change, context), "`service`", context)


def _lay_over_service(base: Node, change: Node, context: Context) -> Node:
    """Lay the change over a service; one of another kind replaces it as a whole."""
    ours, theirs = context.entries(base), context.entries(change)
    kind = next(iter(ours), "")
    declared = find_service(kind) if kind else None
    if declared is None:
        return change
    for name, (key, _) in theirs.items():
        if name != kind and name in {one.name for one in declared.keys}:
            hint = f"write it into the service: `service: {{{kind}: {{{name}: …}}}}`"
            context.refuse(key, f"`{name}` is a key of `{kind}`; {hint}")
            return base
    if kind not in theirs:
        return change
    key, value = theirs[kind]
    whole = _lay_over_keys(declared, ours[kind][1], value, context)
    return _at(change, {**theirs, kind: (key, whole)})


def _lay_over_keys(
    declared: ServiceDeclaration, base: Node, change: Node, context: Context
) -> Node:
    ours = _expand_short(declared, base, context)
    theirs = _expand_short(declared, change, context)
    if ours is None or theirs is None:
        return change
    kinds = {key.name: key.kind for key in declared.keys}
    joined = dict(ours)
    for name, (key, value) in theirs.items():
        # Some keys take null as a value of their own, which then takes nothing away.
        if value.value is None and name in kinds and not kinds[name].takes_null:
            if name not in ours:
                hint = suggest_name(name, ours, "the contract's service does not have it")
                context.refuse(key, f"null takes `{name}` away; {hint}")
            joined.pop(name, None)
        elif name in ours:
            joined[name] = key, lay_over(ours[name][1], value)
        else:
            joined[name] = key, value
    return _at(change, joined)


def _expand_short(declared: ServiceDeclaration, node: Node, context: Context) -> Entries | None:
    """Return the keys of a service that may be written as its main key's value alone."""
    if node.is_mapping:
        return context.entries(node)
    return {declared.main.name: (node, node)} if declared.is_short else None


def lay_over(base: Node, change: Node) -> Node:
    """Return a value with a change: mappings are joined key by key, all else is replaced."""
    if not (base.is_mapping and change.is_mapping):
        return change
    return _at(change, dict(_join(base.entries, change.entries)))


def _join(ours: Entries, theirs: Entries) -> Iterator[tuple[str, tuple[Node, Node]]]:
    for name in {**ours, **theirs}:
        if name not in theirs:
            yield name, ours[name]
        elif theirs[name][1].value is not None:
            key, value = theirs[name]
            yield name, (key, lay_over(ours[name][1], value) if name in ours else value)


def _at(node: Node, entries: Entries) -> Node:
    """Return a mapping that stands where a node stands."""
    start, end = (node.line, node.column), (node.end_line, node.end_column)
    return Node(entries, node.source, start, end)
