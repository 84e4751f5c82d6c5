"""What a run keeps once for all of its trials: the inputs that were asked, and tracebacks.

A trial names its input and its traceback; the texts stand beside the journal, each once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trialwise.model.trial import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedInput:
    """The input as text, shortened and redacted like a reply."""

    value: str
    expected: str | None = None
    """The expected answer; None if the input has none."""
    metadata: str | None = None
    """What else is known of the input, as JSON; None where nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTexts:
    """The inputs and tracebacks that the trials of a run name.

    >>> line = {"x": "inputs", "in": "q1", "hash": "ab", "value": "15 * 37?", "expected": "555"}
    >>> RunTexts.from_lines([line]).inputs["inputs", "q1"].expected
    '555'
    """

    inputs: Mapping[tuple[str, str], AskedInput] = field(default_factory=dict)
    """The inputs, by experiment and input id."""
    tracebacks: Mapping[str, str] = field(default_factory=dict)
    """The tracebacks, by their hash."""
    trial_names: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """What a file with results calls each trial, by experiment and index, where it says so."""

    def find_input(self, trial: Trial) -> AskedInput | None:
        """Return the input of a trial, or None if the run does not keep its inputs."""
        return self.inputs.get((trial.experiment, trial.input_id))

    def find_traceback(self, trial: Trial) -> str:
        """Return the traceback of a trial; empty if there is none or it was not kept."""
        return self.tracebacks.get(trial.traceback, "") if trial.traceback else ""

    @classmethod
    def from_lines(cls, lines: Iterable[Mapping[str, Any]]) -> RunTexts:
        """Read the texts that `input_line` and `traceback_line` wrote.

        Raises:
            LookupError: A line lacks a key, or names a text that no line before it has.
        """
        inputs: dict[tuple[str, str], AskedInput] = {}
        contents: dict[str, AskedInput] = {}
        tracebacks: dict[str, str] = {}
        for line in lines:
            key = line["hash"]
            if "traceback" in line:
                tracebacks[key] = line["traceback"]
                continue
            if "value" in line:
                contents[key] = AskedInput(
                    value=line["value"],
                    expected=line.get("expected"),
                    metadata=line.get("metadata"),
                )
            inputs[line["x"], line["in"]] = contents[key]
        return cls(inputs=inputs, tracebacks=tracebacks)


def hash_text(*texts: str | None) -> str:
    """Return the hash of a text, sixteen characters long.

    >>> hash_text("a", None) != hash_text("a", "") != hash_text("a")
    True
    """
    digest = blake2b(digest_size=8)
    for text in texts:
        content = b"" if text is None else text.encode(errors="surrogatepass")
        digest.update(b"%d:" % (-1 if text is None else len(content)) + content)
    return digest.hexdigest()


def input_line(
    experiment: str, input_id: str, asked: AskedInput, *, is_known: bool
) -> dict[str, Any]:
    """Return the line of an input; content that was already written is only referred to.

    Args:
        experiment: The experiment that it belongs to.
        input_id: Its identifier there.
        asked: Its content.
        is_known: Whether a line before holds the same content.
    """
    line: dict[str, Any] = {"x": experiment, "in": input_id}
    # Left out where there is none, as it was before there were any.
    further = () if asked.metadata is None else (asked.metadata,)
    line["hash"] = hash_text(asked.value, asked.expected, *further)
    if not is_known:
        line["value"] = asked.value
        if asked.expected is not None:
            line["expected"] = asked.expected
        if asked.metadata is not None:
            line["metadata"] = asked.metadata
    return line


def traceback_line(key: str, text: str) -> dict[str, Any]:
    """Return the line of a traceback.

    Args:
        key: Its hash, which trials name.
        text: The whole of it.
    """
    return {"hash": key, "traceback": text}
