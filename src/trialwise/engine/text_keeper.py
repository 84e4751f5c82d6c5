"""Keeps the inputs that were asked and the tracebacks of the service, each once.

A text is in the log before the first trial that names it, so that no trial of a journal lacks its
input. A passing trial of an input that was asked before costs one look into a set.
"""

from __future__ import annotations

from trialwise.engine.excerpts import Excerpts
from trialwise.engine.ports import TrialLog
from trialwise.model.kept_texts import AskedInput, RunTexts, hash_text, input_line
from trialwise.model.sampling import Input
from trialwise.model.trial import Trial


class TextKeeper:
    """The texts of one run.

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
        log: TrialLog | None = None,
        known: RunTexts | None = None,
        keeps_inputs: bool = True,
    ) -> None:
        self._excerpts = excerpts
        self._log = log
        self._keeps_inputs = keeps_inputs
        self._inputs = dict(known.inputs) if known else {}
        self._contents = {hash_text(one.value, one.expected) for one in self._inputs.values()}

    def keep(self, trial: Trial, given: Input | None) -> None:
        """Keep what a trial names, before the trial itself is kept.

        Args:
            trial: It is about to be counted.
            given: Its input; None where there is none to show.

        Raises:
            OSError: The log cannot be written.
        """
        place = trial.experiment, trial.input_id
        if given is not None and self._keeps_inputs and place not in self._inputs:
            self._keep_input(place, given)

    def _keep_input(self, place: tuple[str, str], given: Input) -> None:
        asked = AskedInput(
            value=self._excerpts.value(given.value),
            expected=None if given.expected is None else self._excerpts.value(given.expected),
        )
        line = input_line(*place, asked, is_known=False)
        if line["hash"] in self._contents:
            line = input_line(*place, asked, is_known=True)
        if self._log is not None:
            self._log.append(line)
        self._contents.add(line["hash"])
        self._inputs[place] = asked

    def sync(self) -> None:
        """Make everything that was kept survive a power cut."""
        if self._log is not None:
            self._log.sync()

    @property
    def texts(self) -> RunTexts:
        """Everything that was kept."""
        return RunTexts(inputs=self._inputs)
