"""The types that the hints of a dataclass name, read without loading what no value needs yet."""

from __future__ import annotations

import sys
import typing
from collections.abc import Mapping
from functools import cache
from inspect import get_annotations
from types import CodeType
from typing import Any, ForwardRef

from trialwise import stats
from trialwise.model.verdict import ProcedureDesign
from trialwise.stats import sequential

#: Dataclasses that a module may name for the type checker alone, and what each is imported from.
LATER = {
    **dict.fromkeys(dir(stats), stats.__name__),
    **dict.fromkeys(dir(sequential), sequential.__name__),
    "BaselineReference": "trialwise.model.baseline",
    **dict.fromkeys(("Metrics", "Reliability", "Stability"), "trialwise.model.gate"),
    "JudgedLook": "trialwise.stats.judged_looks",
    "GateFinding": "trialwise.model.metrics",
    **dict.fromkeys(("CriterionPlan", "Plan"), "trialwise.model.plan"),
}


def read_hints(cls: type) -> dict[str, Any]:
    """Read the types of a class's fields."""
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        # A text is read in the module that declares the field, which may be another's.
        names = _Names(vars(sys.modules[base.__module__]))
        for name, hint in get_annotations(base).items():
            found = eval(_compile(hint), vars(typing), names) if isinstance(hint, str) else hint
            # What a field says beside its type is for suites, and no matter of records.
            annotated = typing.get_origin(found) is typing.Annotated
            hints[name] = typing.get_args(found)[0] if annotated else found
    return hints


@cache
def _compile(hint: str) -> CodeType:
    # Kept, since most hints stand in many classes and compiling one takes long.
    return compile(hint, "<hint>", "eval")


class _Names(dict[str, Any]):
    """What the hints of a module may name.

    An alias may be a text at run time, so that its module need not import `typing`. A class may be
    imported for the type checker alone, so that a run by one method does not load the results of
    all others: it stays a name until there is a value of it.
    """

    def __init__(self, module: Mapping[str, Any]) -> None:
        super().__init__()
        self._module = module

    def __missing__(self, name: str) -> Any:
        if name in self._module:
            found = self._module[name]
            return eval(found, vars(typing), self) if isinstance(found, str) else found
        if name == ProcedureDesign.__name__:  # the alias `Design` is used in other modules, too
            return ProcedureDesign
        if name in LATER:
            return ForwardRef(name)
        raise KeyError(name)
