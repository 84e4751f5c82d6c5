"""The services that a contract may name, as keys: what is under test, and how it is reached.

Which keys a service has is declared by its constructor. A service is loaded when a suite names it.
"""

from __future__ import annotations

from trialwise.declarations.scalars import Kind, Schema
from trialwise.declarations.structures import Fields, Key, More, Record, Short
from trialwise.declarations.written import Invalid, Reader, Written
from trialwise.extensions import SERVICES, extension_names
from trialwise.services.service_declarations import (
    ServiceDeclaration,
    find_service,
    service_names,
)

__all__ = ["SERVICE", "DeclaredService"]


class DeclaredService(Kind):
    """The keys of a declared service, or its main one alone."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def declared(self) -> ServiceDeclaration:
        """The declaration, which is loaded when something of it is needed."""
        declared = find_service(self.name)
        assert declared is not None, self.name
        return declared

    @property
    def doc(self) -> str:  # type: ignore[override]
        """What it is."""
        return self.declared.doc

    @property
    def expected(self) -> str:  # type: ignore[override]
        """What it is, as the rest of a sentence that starts with "must be"."""
        return self.kind.expected

    @property
    def kind(self) -> Record | Short:
        """How it is written."""
        declared = self.declared
        record = Record(
            self.name,
            declared.keys,
            required=tuple(key.name for key in declared.keys if key.is_required),
            doc=declared.doc,
        )
        return Short(record) if declared.is_short else record

    def read(self, node: Written, label: str, reader: Reader) -> Fields | Invalid:
        """What is said of it."""
        return self.kind.read(node, label, reader)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """The same."""
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
