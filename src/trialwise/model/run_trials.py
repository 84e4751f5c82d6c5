"""All trials of a run, experiment by experiment; see `trial_table` for how they are held."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import overload

from trialwise.model.trial import Trial
from trialwise.model.trial_table import TrialTable, equal_trials


class Trials(Sequence[Trial]):
    """The trials of a run, experiment by experiment, each in the order of inputs.

    >>> trials = Trials.of([Trial(experiment="sums", index=0, input_id="a", seed=7, outcomes=())])
    >>> len(trials), trials[0].input_id, len(trials.of_experiment("sums"))
    (1, 'a', 1)

    Args:
        tables: The trials of each experiment.
    """

    def __init__(self, tables: Iterable[TrialTable] = ()) -> None:
        self._tables = {one.experiment: one for one in tables}

    @classmethod
    def of(cls, trials: Iterable[Trial]) -> Trials:
        """Hold trials that are in memory already."""
        if isinstance(trials, Trials):
            return trials
        found: dict[str, list[Trial]] = {}
        for one in trials:
            found.setdefault(one.experiment, []).append(one)
        return cls(TrialTable.of(mine) for mine in found.values())

    def seal(self) -> Trials:
        """Return the same trials, to which no run adds others."""
        for table in self._tables.values():
            table.is_sealed = True
        return self

    @property
    def tables(self) -> tuple[TrialTable, ...]:
        """The trials of each experiment that has any."""
        return tuple(one for one in self._tables.values() if len(one))

    def of_experiment(self, name: str) -> TrialTable:
        """Return the trials of one experiment."""
        found = self._tables.get(name)
        return TrialTable(name, ()) if found is None else found

    def sketches(self) -> Iterator[Trial]:
        """Yield every trial without the texts of its outcomes; see `TrialTable.sketch`."""
        return chain.from_iterable(one.sketches() for one in self._tables.values())

    def failing(self) -> Iterator[Trial]:
        """Yield the trials that failed a criterion."""
        return (table[place] for table in self._tables.values() for place in table.failing())

    @property
    def failures(self) -> int:
        """How many trials failed a criterion."""
        return sum(one.fails.count(1) for one in self._tables.values())

    def __len__(self) -> int:
        return sum(map(len, self._tables.values()))

    @overload
    def __getitem__(self, place: int) -> Trial: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Trial, ...]: ...
    def __getitem__(self, place: int | slice) -> Trial | tuple[Trial, ...]:
        if isinstance(place, slice):
            return tuple(self._find(one) for one in range(len(self))[place])
        return self._find(range(len(self))[place])

    def _find(self, place: int) -> Trial:
        for table in self._tables.values():
            if place < len(table):
                return table[place]
            place -= len(table)
        raise IndexError(place)

    def __iter__(self) -> Iterator[Trial]:
        return chain.from_iterable(self._tables.values())

    def __eq__(self, other: object) -> bool:
        return equal_trials(self, other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self):,} trials>"
