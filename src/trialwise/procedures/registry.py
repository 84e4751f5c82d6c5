"""Procedures by name: the built-in ones, and those that other distributions declare.

A built-in is imported when it is first asked for: a run by one procedure does not load the others.
Entry points of the group `trialwise.procedures` are looked up only for a name that no built-in has.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from trialwise.errors import InvalidArgument
from trialwise.extensions import PROCEDURES, extension_names, find_extension
from trialwise.procedures.base import Procedure

if TYPE_CHECKING:
    from trialwise.model.plan import CriterionPlan
    from trialwise.model.verdict import Finding


#: Each built-in procedure and the module whose `PROCEDURE` it is, or the name that it has there.
_BUILT_IN = {
    "ANYTIME": "trialwise.procedures.sequential:ANYTIME",
    "COMPLIANCE": "trialwise.procedures.compliance",
    "CORPUS": "trialwise.procedures.corpus",
    "MEAN": "trialwise.procedures.mean_score",
    "OBSERVATIONAL": "trialwise.procedures.observational",
    "REGRESSION": "trialwise.procedures.regression",
    "REPORTED": "trialwise.procedures.observational:REPORT_ONLY",
    "SEQUENTIAL": "trialwise.procedures.sequential",
}


@cache
def find_procedure(name: str) -> Procedure:
    """Find a procedure by its name.

    >>> find_procedure("OBSERVATIONAL").question
    'Was any failure observed?'

    Raises:
        InvalidArgument: Neither trialwise nor an installed distribution has such a procedure.
    """
    # Nothing that is installed takes the place of a built-in: a record names its procedure, and
    # has to be decided again by the same one.
    if name in _BUILT_IN:
        module, _, held_by = _BUILT_IN[name].partition(":")
        found: Procedure = getattr(import_module(module), held_by or "PROCEDURE")
        return found
    other = find_extension(PROCEDURES, name, _accept)
    if other is None:
        known = ", ".join((*_BUILT_IN, *extension_names(PROCEDURES)))
        raise InvalidArgument("procedure", name, f"be one of {known}")
    return other


def load_procedures(names: Iterable[str]) -> None:
    """Load the modules of some procedures, so that records of theirs can be read.

    A record knows evidence and a design by the name of their class, and these stand in the module
    of their procedure. A process that only reads has not loaded it yet.

    Raises:
        InvalidArgument: Neither trialwise nor an installed distribution has one of them.
    """
    for name in names:
        find_procedure(name)


def procedure_of(decided: CriterionPlan | Finding) -> Procedure:
    """Find the procedure that plans, decides and explains a criterion."""
    return find_procedure(decided.procedure)


def _accept(loaded: object) -> Procedure | None:
    """Accept an instance, or a class that is made without arguments."""
    made = loaded() if isinstance(loaded, type) and issubclass(loaded, Procedure) else loaded
    return made if isinstance(made, Procedure) else None
