"""A trial that was made from columns, and reads its texts back from the journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from trialwise.model.trial import Trial
from trialwise.model.trial_lines import equal_fields

if TYPE_CHECKING:
    from trialwise.model.trial_table import TrialTable


class LineReader(Protocol):
    """Gives back what a journal holds."""

    def read(self, at: int) -> Mapping[str, Any]:
        """Return the record of the line that begins at a byte of the journal."""
        ...


class KeptTrial(Trial):
    """A trial made from columns, whose texts are read when somebody asks for them."""

    __slots__ = ("table",)
    table: TrialTable
    """Knows what is not set."""

    if not TYPE_CHECKING:  # a type checker would take it to allow every name

        def __getattr__(self, name: str) -> Any:
            # Python asks here for a field that is not set, and for what there is not.
            if name not in Trial.__slots__:
                raise AttributeError(name)
            self.table.complete(self, name)
            return getattr(self, name)

    def __eq__(self, other: object) -> bool:
        return equal_fields(self, other) if isinstance(other, Trial) else NotImplemented

    __hash__ = Trial.__hash__
