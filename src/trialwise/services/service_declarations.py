"""What a service is called in a suite, which keys it takes and where it lives.

A service is declared by its class: the signature of the constructor says which keys there are and
its docstring what they mean. The catalogue says where the built-in ones live; the entry points of
other distributions are asked only for a name that the catalogue does not have.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from trialwise.catalogue import SERVICES as BUILT_IN
from trialwise.declarations.signatures import Declaration
from trialwise.declarations.structures import Key
from trialwise.extensions import SERVICES, find_extension


class ServiceDeclaration(Declaration):
    """A service as it is declared."""

    __slots__ = ()
    texts = "read"

    @property
    def main(self) -> Key:
        """The key that a service is called by where nobody named it: the first that is required."""
        return next((key for key in self.keys if key.is_required), self.keys[0])

    @property
    def is_short(self) -> bool:
        """Whether the main key's value alone describes the service."""
        required = [key for key in self.keys if key.is_required]
        return required == [self.keys[0]] and self.keys[0].is_positional


def service_names() -> tuple[str, ...]:
    """Return the names of the built-in services."""
    return tuple(BUILT_IN)


@cache
def find_service(name: str) -> ServiceDeclaration | None:
    """Return the declaration of a service, built in or of another distribution, if there is one.

    Raises:
        ExtensionError: Another distribution declares it, and it cannot be used.
    """
    if name in BUILT_IN:
        module, _, class_name = BUILT_IN[name].partition(":")
        return ServiceDeclaration(name, getattr(import_module(f"trialwise.{module}"), class_name))
    return find_extension(SERVICES, name, lambda loaded: _accept(name, loaded))


def _accept(name: str, loaded: object) -> ServiceDeclaration | None:
    """Return the declaration of a class or function that makes a service."""
    if not callable(loaded):
        return None
    declared = ServiceDeclaration(name, loaded)
    return declared if declared.keys else None
