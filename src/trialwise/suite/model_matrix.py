"""One contract for each of several models: `{model}` in a service, filled in before it is built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trialwise.declarations.structures import Fields
from trialwise.suite.environment import EnvironmentText
from trialwise.suite.nodes import Node
from trialwise.suite.reading_context import Context

__all__ = ["PLACEHOLDER", "models_of", "name_cell", "with_model"]

PLACEHOLDER = "{model}"
#: They would be filled in themselves; blanks, as bad, would make two arguments of one.
_UNFIT = frozenset("{}")


def models_of(fields: Fields, context: Context) -> Sequence[str | None]:
    """The models of a contract; None alone where it names none, nothing once they are refused."""
    names: list[str] = fields.get("models", [])
    if not names:
        return () if "models" in fields.nodes else (None,)
    node = fields.at("models")
    items = list(node.items())
    for place, name in enumerate(names):
        # Included ones stand in other files.
        at = items[place] if len(items) == len(names) else node
        if _UNFIT & set(name) or any(one.isspace() for one in name):
            context.refuse(at, "the name of a model has neither blanks nor braces")
        elif name in names[:place]:
            context.refuse(at, f"the model `{name}` is there twice")
    factors = fields.get("factors")
    if isinstance(factors, Fields) and "model" in factors.nodes:
        context.refuse(factors.keys["model"], "`models` gives the factor `model`: leave it out")
    return names


def name_cell(name: str, model: str | None) -> str:
    """What the contract of one model is called.

    >>> name_cell("weather", "small-1"), name_cell("weather with {model}", "small-1")
    ('weather [small-1]', 'weather with small-1')
    """
    if model is None:
        return name
    return name.replace(PLACEHOLDER, model) if PLACEHOLDER in name else f"{name} [{model}]"


def with_model(fields: Fields, model: str, node: Node, context: Context) -> Fields | None:
    """A service as it is for one model; None once it is reported that it takes none.

    Args:
        fields: The service's.
        model: The model's name.
        node: The list of models.
        context: The suite being read.
    """
    python = fields.get("python")
    if isinstance(python, Fields):
        # A function is given it by name.
        changed = _copy_fields(fields)
        changed.values["python"] = given = _copy_fields(python)
        given.values["model"] = model
        return changed
    if not _mentions(fields):
        message = 'the service does not say where a model goes: write "{model}" into it, quoted'
        context.refuse(node, message)
        return None
    filled: Fields = _fill_model(fields, model)
    return filled


def _copy_fields(fields: Fields) -> Fields:
    copy = Fields(fields.node)
    copy.values, copy.keys = dict(fields.values), fields.keys
    copy.nodes, copy.sound = fields.nodes, fields.sound
    return copy


def _mentions(value: Any) -> bool:
    if isinstance(value, str):
        return PLACEHOLDER in value
    return any(map(_mentions, _parts(value)))


def _parts(value: Any) -> Sequence[Any]:
    if isinstance(value, Fields):
        value = value.values
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else ()


def _fill_model(value: Any, model: str) -> Any:
    if isinstance(value, Fields):
        copy = _copy_fields(value)
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
