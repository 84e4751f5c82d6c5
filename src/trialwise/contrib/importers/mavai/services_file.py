"""A `mavai-services/1` file, read and checked: what each service is, and what is explored with it.

Explorations and optimisations are experiments, not tests: they are checked as their format says and
then left behind, by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trialwise.contrib.importers.mavai.bindings import Bindings
from trialwise.contrib.importers.mavai.experiments import check_explorations, check_optimizations
from trialwise.contrib.importers.mavai.file_roots import Roots
from trialwise.contrib.importers.mavai.language_models import LANGUAGE_MODEL, check_model, defaults
from trialwise.contrib.importers.yaml_mappings import Keys
from trialwise.declarations.written import Node, suggest_name
from trialwise.declarations.written import show_value as shown
from trialwise.suite.suite_problems import Problems
from trialwise.suite.yaml_reading import plain

__all__ = ["SERVICES_FORMAT", "ServiceRead", "read_services"]

SERVICES_FORMAT = "mavai-services/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRead:
    """One service of a services file."""

    name: str
    type: str
    configuration: Mapping[str, Any]
    """With the contents of the files that it names."""
    notes: tuple[str, ...]
    node: Node

    @property
    def line(self) -> int:
        """Where it stands in its file, from 1."""
        return self.node.line + 1

    @property
    def is_model(self) -> bool:
        """Whether it is a language model."""
        return self.type == LANGUAGE_MODEL


def read_services(
    root: Node, folder: Path, environment: Mapping[str, str], bindings: Bindings, problems: Problems
) -> dict[str, ServiceRead]:
    """The services of a file, by name, as far as they are sound.

    Args:
        root: The file's.
        folder: Where the file is.
        environment: Where `MAVAI_ROOT_<NAME>` may stand for a root.
        bindings: The types that are registered in code.
        problems: Where to say what is wrong.
    """
    keys = Keys(
        root,
        problems,
        what="a services file",
        known=("format", "roots", "services"),
        required=("format", "services"),
    )
    if "format" in keys and keys.at("format").value != SERVICES_FORMAT:
        message = f"`format` must be {SERVICES_FORMAT}, got {shown(keys.at('format'))}"
        keys.refuse("format", message)
    roots = Roots(keys.at("roots") if "roots" in keys else None, folder, environment, problems)
    block = keys.at("services") if "services" in keys else None
    services: dict[str, ServiceRead] = {}
    if block is not None and (not block.is_mapping or not block.entries):
        keys.refuse("services", "`services` must hold at least one service by name")
    elif block is not None:
        for name, (key, value) in block.entries.items():
            if not name:
                problems.add(key, "a service needs a name")
            services[name] = _Definition(name, value, roots, bindings, problems).read()
    roots.check_used()
    return services


@dataclass(frozen=True, slots=True)
class _Definition:
    """One definition being read."""

    name: str
    node: Node
    roots: Roots
    bindings: Bindings
    problems: Problems

    def read(self) -> ServiceRead:
        """The service, as far as it is sound."""
        inside = "belongs in `configuration`, where every parameter is"
        keys = Keys(
            self.node,
            self.problems,
            what=f"the service `{self.name}`",
            known=("type", "configuration", "explorations", "optimizations"),
            required=("type", "configuration"),
            gone=dict.fromkeys(("model", "provider", "temperature", "system-prompt"), inside),
        )
        kind = keys.text("type", "the name of a type") or ""
        if kind and kind != LANGUAGE_MODEL and kind not in self.bindings.factories:
            keys.refuse("type", self._unknown_type(kind))
        notes: list[str] = []
        configuration: dict[str, Any] = {}
        if "configuration" in keys:
            configuration = self._configuration(keys.at("configuration"), kind, whole=True)
        if "explorations" in keys:
            entries = keys.items("explorations", "a list of at least one exploration")
            points = [self._configuration(one, kind, whole=False) for one in entries]
            resolved = {**defaults(kind), **configuration}
            check_explorations(self.name, resolved, entries, points, self.problems)
            notes.append(f"`explorations` of `{self.name}` (line {keys.line('explorations')})")
        if "optimizations" in keys:
            check_optimizations(self, keys, kind, {**defaults(kind), **configuration})
            notes.append(f"`optimizations` of `{self.name}` (line {keys.line('optimizations')})")
        return ServiceRead(
            name=self.name,
            type=kind,
            configuration=configuration,
            notes=tuple(f"{one} are experiments, not tests, and are left out." for one in notes),
            node=self.node,
        )

    def _unknown_type(self, kind: str) -> str:
        known = [LANGUAGE_MODEL, *self.bindings.factories]
        hint = suggest_name(kind, known, f"known are {', '.join(known)}")
        where = f" in {self.bindings.path}" if self.bindings.path else ""
        return (
            f"there is no type `{kind}`; {hint} (others are registered with @binding_factory"
            f"{where or ' in mavai-bindings.py, which is not there'})"
        )

    def _configuration(self, node: Node, kind: str, *, whole: bool) -> dict[str, Any]:
        """A configuration, or the part of one that an experiment replaces."""
        what = f"`configuration` of `{self.name}`" if whole else f"an experiment of `{self.name}`"
        if not node.is_mapping or (not whole and not node.entries):
            self.problems.add(node, f"{what} must be a mapping of parameters, got {shown(node)}")
            return {}
        if kind == LANGUAGE_MODEL:
            return check_model(node, self.roots, self.problems, what=what, whole=whole)
        values: dict[str, Any] = {}
        for key, (_, value) in node.entries.items():
            if not value.is_scalar or value.value is None:
                message = (
                    f"`{key}` in {what} must be text, a number, true or false, got {shown(value)}"
                )
                self.problems.add(value, message)
            else:
                values[key] = plain(value)
        return values

    def replacement(self, node: Node, kind: str) -> dict[str, Any]:
        """What an experiment replaces in the configuration."""
        return self._configuration(node, kind, whole=False)
