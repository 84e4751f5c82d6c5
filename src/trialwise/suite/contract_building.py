"""One contract of a suite: its own keys over those at the top, made into the model's nouns.

A contract that names several models becomes one contract for each of them. Its arms are variants
that are compared with it and never run by themselves. An arm says only what it changes. Its
mappings are laid over those of the contract, key by key, as in a JSON merge patch (RFC 7396): a
value replaces the contract's, and null takes it away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from trialwise.declarations.signatures import Names
from trialwise.declarations.structures import Fields
from trialwise.declarations.written import INVALID, Invalid, Node, suggest_name
from trialwise.model.claim import Sampling
from trialwise.model.contract import Contract
from trialwise.model.criterion import Criterion
from trialwise.model.options import RunOptions
from trialwise.suite import contract_parts
from trialwise.suite.loaded_suite import SuiteContract
from trialwise.suite.reading_context import Context, EnvironmentText, check_sampling, make_model
from trialwise.suite.suite_services import (
    build_service,
    change_service,
    hash_service,
    list_values,
    service_label,
)

#: A key of one's own takes the place of the other, too, that the top may hold.
_INSTEAD = {
    "trials": "max_trials",
    "max_trials": "trials",
    "inputs": "samplings",
    "samplings": "inputs",
}
#: What one contract is called says nothing about the others.
_NOT_SHARED = ("name", "description")
PLACEHOLDER = "{model}"
#: It stands between the name of a contract and that of its arm.
SEPARATOR = "/"
#: They would be filled in themselves; blanks, as bad, would make two arguments of one.
_UNFIT = frozenset("{}")


class _Service(NamedTuple):
    """What is under test, what it is called and the model it is for."""

    service: Any
    label: str
    model: str | None
    written: str
    """A hash of what the suite says of it."""


@dataclass(eq=False)
class Top:
    """The top of a suite: what its contracts share, and the services built so far."""

    fields: Fields
    context: Context
    # With the keys of each, so that no other object takes the place of its identity.
    _built: dict[tuple[int, str | None, bool], tuple[Fields, Any]] = field(default_factory=dict)

    @property
    def services(self) -> Fields:
        """The services by name."""
        services = self.fields.get("services")
        return services if isinstance(services, Fields) else Fields(self.fields.node)

    def find_service(
        self, fields: Fields, model: str | None, node: Node, *, is_arm: bool = False
    ) -> _Service | None:
        """Return what is under test, or None once something is wrong with it.

        It is built once for each model, however many contracts share it.

        Args:
            fields: The keys of the contract.
            model: The model it is for, where there are several.
            node: Where to report that the service takes no model.
            is_arm: Whether it is an arm's, which may be the same beside every model.
        """
        given = fields.get("service")
        found = self._name_service(given, fields.at("service")) if isinstance(given, str) else given
        if not isinstance(found, Fields):
            return None
        # An arm may name one service for all models, such as the one that is in use now.
        if is_arm and not _mentions(found) and not isinstance(found.get("python"), Fields):
            model = None
        key = id(found), model, is_arm
        if key not in self._built:
            filled: Any = found
            if model is not None:
                filled = with_model(found, model, node, self.context, is_arm=is_arm)
            built = INVALID if filled is INVALID else build_service(filled, self.context)
            self._built[key] = found, built
        service = self._built[key][1]
        if service is INVALID:
            return None
        label = given if isinstance(given, str) else service_label(found)
        return _Service(service, label, model, hash_service(found, model))

    def _name_service(self, name: str, node: Node) -> Any:
        """Return the service of a name."""
        if name in self.services.nodes:
            return self.services.get(name, INVALID)
        hint = suggest_name(name, self.services.nodes, "describe it under `services`")
        if ":" in name:
            hint = f'a function is written `{{python: "{name}"}}`'
        return self.context.refuse(node, f"there is no service `{name}`; {hint}")


def build_contract(
    own: Fields | None, top: Top, context: Context
) -> list[tuple[SuiteContract, Node]]:
    """Build a contract, or one for each of its models, each with the node that names it.

    There is none once its problems are reported.

    Args:
        own: Its own keys; None where the suite itself is the contract.
        top: The top of the suite.
        context: The suite being read.
    """
    before = len(context.problems)
    fields = top.fields if own is None else _overlaid(own, top.fields)
    # Reported beside all other problems of the contract, and not instead of them.
    if "service" not in fields.nodes:
        context.refuse(fields.node, "there is no `service`: say what is under test")
    services = [
        top.find_service(fields, model, fields.at("models")) for model in models_of(fields, context)
    ]
    samplings = contract_parts.build_samplings(fields, context)
    names = None if isinstance(samplings, Invalid) else list(samplings)
    criteria = contract_parts.build_criteria(fields, names, context)
    options = contract_parts.build_options(fields, names, context)
    parts = contract_parts.build_parts(fields, criteria, names, context) | {
        "activity": _import(fields, "activity", context),
        "before_each": _import(fields, "before_each", context),
        "description": fields.get("description", ""),
    }
    if isinstance(latency := fields.get("latency"), Fields):
        check_sampling(latency, names, "`latency`", context)
    if isinstance(arms := fields.get("arms"), Fields):
        for name, node in arms.keys.items():
            # `agent/short` names the arm of a contract, and would name two things.
            if SEPARATOR in name or name != name.strip():
                context.refuse(node, "the name of an arm has no `/` and no blanks around it")
    # Nothing is built on what is wrong: its errors would be those of the mistake, said again.
    if len(context.problems) > before or not fields.sound:
        return []
    # A service that several contracts share is reported once.
    sound = [one for one in services if one is not None]
    if len(sound) < len(services):
        return []
    if isinstance(options, Invalid) or isinstance(samplings, Invalid):
        return []
    # One set of checks for all models and arms: they are compared by the same questions.
    making = _Making(criteria, samplings, options, parts, context)
    built: list[tuple[SuiteContract, Node]] = []
    for one in sound:
        name = name_cell(fields.get("name", one.label), one.model)
        cell = making.make(name, one, fields)
        if cell is None:
            return []
        if context.with_arms:
            cell = replace(cell, arms=tuple(_arms(cell, one.model, fields, top, making)))
        built.append((cell, fields.at("name")))
    return [] if len(context.problems) > before else built


class _Making(NamedTuple):
    """What the models and the arms of a contract share."""

    criteria: tuple[Criterion, ...]
    samplings: dict[str, Sampling]
    options: RunOptions
    parts: dict[str, Any]
    context: Context

    def make(
        self, name: str, one: _Service, fields: Fields, **changed: Any
    ) -> SuiteContract | None:
        """Return the contract of one service, or None once its problem is reported.

        Args:
            name: What the contract is called.
            one: The service under test.
            fields: The keys of the contract.
            changed: Parts that an arm has instead of the contract's.
        """
        parts, tags = {**self.parts, **changed}, Names().join(fields.get("tags", ()))
        if one.model is not None:
            parts["factors"] = parts["factors"] | {"model": one.model}
            tags = (*tags, one.model)
        build = partial(
            Contract, name, one.service, self.criteria, sampling=self.samplings, **parts
        )
        contract = make_model(build, fields, self.context)
        if isinstance(contract, Invalid):
            return None
        return SuiteContract(
            contract=contract,
            options=self.options,
            tags=tags,
            line=fields.node.line + 1,
            service=one.written,
            places={
                **{gate.name: _place(fields.keys[gate.name]) for gate in contract.gates},
                **{each.get("name", ""): _place(each.node) for each in fields.get("criteria", [])},
                **{f".{key}": _place(node) for key, node in fields.nodes.items()},
                ".": _place(fields.node),
            },
        )


def _place(node: Node) -> str:
    """Return where a node stands, as file:line; an option of the command line has no lines."""
    # Counted from 1, as editors and compilers count.
    return f"{node.source.name}:{node.line + 1}" if node.source.is_file else node.source.name


def _arms(
    base: SuiteContract, model: str | None, fields: Fields, top: Top, making: _Making
) -> Iterator[SuiteContract]:
    """Yield the arms of a contract that are sound."""
    arms = fields.get("arms")
    context = making.context
    for name, arm in (arms.values if isinstance(arms, Fields) else {}).items():
        changed = overlay_arm(fields, arm, top.services.nodes, context) if arm.sound else None
        if changed is None:
            continue
        service = top.find_service(changed, model, arm.at("service"), is_arm=True)
        parts: dict[str, Any] = {
            **contract_parts.build_factors(changed, context),
            "description": changed.get("description", ""),
        }
        if "before_each" in arm.nodes:
            parts["before_each"] = _import(arm, "before_each", context)
        if service is not None:
            made = making.make(f"{base.name}{SEPARATOR}{name}", service, changed, **parts)
            if made is not None:
                yield replace(made, arm=name)


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
        changed.values["service"] = change_service(
            fields.nodes.get("service"), arm.nodes["service"], services, context
        )
    ours, theirs = fields.get("factors"), arm.get("factors")
    if isinstance(ours, Fields) and isinstance(theirs, Fields):
        changed.values["factors"] = joined = ours.copy(theirs.node)
        joined.take(theirs, theirs.values)
    return None if len(context.problems) > before else changed


def _overlaid(own: Fields, top: Fields) -> Fields:
    fields = own.copy()
    # What is wrong at the top was reported there, and leaves nothing to build on.
    fields.sound = own.sound and top.sound
    kept = {*_NOT_SHARED, *own.nodes, *(_INSTEAD.get(name, "") for name in own.nodes)}
    fields.take(top, [name for name in top.nodes if name not in kept])
    return fields


def _import(fields: Fields, key: str, context: Context) -> Any:
    """The function that a key names, or None where it is not given."""
    where = fields.get(key)
    # A hook before each trial is part of the service, which a recording stands for.
    if where is None or (key == "before_each" and context.without_services):
        return None
    return context.import_function(fields.at(key), where)


def models_of(fields: Fields, context: Context) -> Sequence[str | None]:
    """Return the models of a contract: None if it names none, nothing if they are refused."""
    names: list[str] = fields.get("models", [])
    if not names:
        return () if "models" in fields.nodes else (None,)
    node = fields.at("models")
    items = list(node.items())
    for place, name in enumerate(names):
        # Included ones stand in other files.
        at = items[place] if len(items) == len(names) else node
        # A blank would split an argument of a command in two, and a brace would be filled in
        # itself.
        if _UNFIT & set(name) or any(one.isspace() for one in name):
            context.refuse(at, "the name of a model has neither blanks nor braces")
        elif name in names[:place]:
            context.refuse(at, f"the model `{name}` is there twice")
    factors = fields.get("factors")
    if isinstance(factors, Fields) and "model" in factors.nodes:
        context.refuse(factors.keys["model"], "`models` gives the factor `model`: leave it out")
    return names


def name_cell(name: str, model: str | None) -> str:
    """Name what the contract of one model is called.

    >>> name_cell("weather", "small-1"), name_cell("weather with {model}", "small-1")
    ('weather [small-1]', 'weather with small-1')
    """
    if model is None:
        return name
    return name.replace(PLACEHOLDER, model) if PLACEHOLDER in name else f"{name} [{model}]"


def with_model(
    fields: Fields, model: str, node: Node, context: Context, *, is_arm: bool = False
) -> Any:
    """Return a service as it is for one model; `INVALID` once it is reported that it takes none.

    Args:
        fields: The service's.
        model: The model's name.
        node: The list of models.
        context: The suite being read.
        is_arm: Whether it is an arm's, which may be the same beside every model.
    """
    python = fields.get("python")
    if isinstance(python, Fields):
        # A function is given it by name.
        changed = fields.copy()
        # A copy: other contracts share the service, each with models of its own.
        changed.values["python"] = given = python.copy()
        given.values |= {"model": model, "needs_model": not is_arm}
        return changed
    # Every model would otherwise be the same service, and their equal rates would look like a
    # result.
    if not _mentions(fields):
        message = 'the service does not say where a model goes: write "{model}" into it, quoted'
        return context.refuse(node, message)
    return _fill_model(fields, model)


def _mentions(fields: Fields) -> bool:
    return PLACEHOLDER in repr(list_values(fields))


def _fill_model(value: Any, model: str) -> Any:
    if isinstance(value, Fields):
        copy = value.copy()
        copy.values = {key: _fill_model(part, model) for key, part in value.values.items()}
        return copy
    if isinstance(value, dict):
        return {key: _fill_model(part, model) for key, part in value.items()}
    if isinstance(value, list):
        return [_fill_model(part, model) for part in value]
    if isinstance(value, EnvironmentText):
        written = value.template.replace(PLACEHOLDER, model)
        return EnvironmentText(str(value).replace(PLACEHOLDER, model), written)
    return value.replace(PLACEHOLDER, model) if isinstance(value, str) else value
