"""Keeps the inputs that were asked and the tracebacks of the service, each once.

A text is in the log before the first trial that names it, so that no trial of a journal lacks its
input. A passing trial of an input that was asked before costs one look into a set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from trialwise.engine.excerpts import Excerpts
from trialwise.engine.ports import RecordLog, ServiceError
from trialwise.errors import BrokenCheck
from trialwise.model.kept_texts import (
    AskedInput,
    RunTexts,
    hash_text,
    input_line,
    traceback_line,
)
from trialwise.model.sampling import Input
from trialwise.model.trial import Trial

if TYPE_CHECKING:
    from trialwise.engine.user_tracebacks import Place

_LONGEST_TRACEBACK = 8000


class TextKeeper:
    """Keeps the texts of one run.

    Args:
        excerpts: How texts are kept.
        log: Where they are made durable; None keeps them in memory only.
        known: What an earlier part of the run has kept.
        keeps_inputs: Whether inputs may be kept.
    """

    def __init__(
        self,
        excerpts: Excerpts,
        *,
        log: RecordLog | None = None,
        known: RunTexts | None = None,
        keeps_inputs: bool = True,
    ) -> None:
        self._excerpts = excerpts
        self._log = log
        self._keeps_inputs = keeps_inputs
        self._inputs = dict(known.inputs) if known else {}
        self._contents = {hash_text(one.value, one.expected) for one in self._inputs.values()}

        self._tracebacks = dict(known.tracebacks) if known else {}
        self._places: dict[Place, str] = {}
        self._unwritten: set[str] = set()

    def keep(self, trial: Trial, given: Input | None) -> None:
        """Keep what a trial names, before the trial itself is kept.

        Args:
            trial: It is about to be counted.
            given: Its input; None where there is none to show.

        Raises:
            OSError: The log cannot be written.
        """
        if self._unwritten and trial.traceback in self._unwritten:
            self._write_traceback(trial.traceback)
        place = trial.experiment, trial.input_id
        if given is not None and self._keeps_inputs and place not in self._inputs:
            self._keep_input(place, given)

    def _keep_input(self, place: tuple[str, str], given: Input) -> None:
        asked = AskedInput(
            value=self._excerpts.value(given.value),
            expected=None if given.expected is None else self._excerpts.value(given.expected),
            metadata=self._excerpts.value(dict(given.metadata)) if given.metadata else None,
        )
        line = input_line(*place, asked, is_known=False)
        if line["hash"] in self._contents:
            line = input_line(*place, asked, is_known=True)
        if self._log is not None:
            self._log.append(line)
        self._contents.add(line["hash"])
        self._inputs[place] = asked

    def note_raised(self, error: BaseException) -> str:
        """Keep where the service or a check raised; return the hash that a trial names it by.

        Only the first exception of a place is written out, since that takes longer than a trial.

        Args:
            error: What the service raised, or what is said of a check that did.
        """
        if isinstance(error, BrokenCheck):
            return self._hold(self._excerpts.text(error.traceback, _LONGEST_TRACEBACK))
        if isinstance(error, ServiceError):
            return ""  # raised on purpose, with a message that says it all
        from trialwise.engine.user_tracebacks import find_place, write_traceback

        place = find_place(error)
        if place is None:
            return ""
        key = self._places.get(place)
        if key is None:
            text = self._excerpts.text(write_traceback(error), _LONGEST_TRACEBACK)
            key = self._places[place] = self._hold(text)
        return key

    def _hold(self, text: str) -> str:
        """Keep a traceback to be written, and return its hash."""
        if not text:
            return ""
        key = hash_text(text)
        self.adopt_tracebacks({key: text})
        return key

    def adopt_tracebacks(self, tracebacks: Mapping[str, str]) -> None:
        """Keep tracebacks that another process has written.

        Args:
            tracebacks: The texts by their hashes.
        """
        for key, text in tracebacks.items():
            if key not in self._tracebacks:
                self._tracebacks[key] = text
                self._unwritten.add(key)

    def _write_traceback(self, key: str) -> None:
        if self._log is not None:
            self._log.append(traceback_line(key, self._tracebacks[key]))
        self._unwritten.remove(key)

    def sync(self) -> None:
        """Make everything that was kept survive a power cut."""
        if self._log is not None:
            self._log.sync()

    @property
    def texts(self) -> RunTexts:
        """Return all kept texts."""
        return RunTexts(inputs=self._inputs, tracebacks=self._tracebacks)
