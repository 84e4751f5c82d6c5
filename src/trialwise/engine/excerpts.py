"""What of a reply is kept for people to read: shortened, without secrets, and JSON everywhere.

One home, so that no text gets from a service into a record past the redaction.
"""

from __future__ import annotations

import json
import os
import sysconfig
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from traceback import StackSummary, TracebackException, walk_tb
from types import CodeType
from typing import Any, cast

from trialwise import model
from trialwise.engine.ports import RecordLog, ServiceError
from trialwise.errors import BrokenCheck, TrialwiseError
from trialwise.model.plain_json import unplain
from trialwise.model.reply import write_reply
from trialwise.model.run import AskedInput, RunTexts, hash_text, input_line
from trialwise.model.trial import MODEL
from trialwise.redaction import redact_values
from trialwise.validation import require_count

# Shows where a service raised: its traceback without frames of trialwise and the event loop.

#: Frames of one exception that are kept, from its end.
# A recursion that went too deep has a thousand frames, all alike.
_MOST_FRAMES = 20
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

Place = tuple[type[BaseException], tuple[tuple[CodeType, int], ...]]
"""Return what identifies a traceback: the type of the exception and the lines it passed through."""


def find_place(error: BaseException) -> Place | None:
    """Return where an exception came from, or None if no frame is the user's own."""
    frames = tuple((frame.f_code, line) for frame, line in walk_tb(error.__traceback__))
    is_own = any(is_own_file(code.co_filename) for code, _ in frames)
    return (type(error), frames) if is_own else None


def write_traceback(error: BaseException) -> str:
    """Return the traceback of an exception as Python writes it, from the user's first frame on."""
    try:
        whole = TracebackException.from_exception(error, compact=True)
        _trim(whole)
        text = "".join(whole.format()).rstrip("\n")
    except Exception:  # the exception's own methods may raise anything
        return ""
    # Paths below the folder of the suite read better without it.
    return text.replace(f'File "{os.getcwd()}{os.sep}', 'File "')


def _trim(one: TracebackException) -> None:
    frames = [frame for frame in one.stack if not frame.filename.startswith(_PACKAGE)]
    while frames and not is_own_file(frames[0].filename):
        del frames[0]
    one.stack = StackSummary.from_list(frames[-_MOST_FRAMES:])
    for other in (one.__cause__, one.__context__, *(one.exceptions or ())):
        if other is not None:
            _trim(other)


@cache
def is_own_file(file: str) -> bool:
    """Return whether a file belongs to neither trialwise, nor Python, nor an installed package."""
    if file.startswith((_PACKAGE, "<frozen")):
        return False
    installed = f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}"
    library = sysconfig.get_path("stdlib") + os.sep
    return not (file.startswith(library) or any(part in file for part in installed))


# Keeps the inputs that were asked and the tracebacks of the service, each once.
#
# A text is in the log before the first trial that names it, so that no trial of a journal lacks
# its input. A passing trial of an input that was asked before costs one look into a set.

# As many frames as are kept, each with a path and a line of code of 400 characters together.
_LONGEST_TRACEBACK = 8000


class TextKeeper:
    """Keeps the texts of one run.

    Args:
        excerpts: How texts are kept.
        log: Where they are made durable; None keeps them in memory only.
        known: What an earlier part of the run has kept.
    """

    def __init__(
        self, excerpts: Excerpts, *, log: RecordLog | None = None, known: RunTexts | None = None
    ) -> None:
        self._excerpts = excerpts
        self._log = log
        self._inputs = dict(known.inputs) if known else {}
        self._contents = {hash_text(one.value, one.expected) for one in self._inputs.values()}

        self._tracebacks = dict(known.tracebacks) if known else {}
        self._places: dict[Place, str] = {}
        self._unwritten: set[str] = set()

    def keep(self, trial: model.Trial, given: model.Input | None) -> None:
        """Keep what a trial names, before the trial itself is kept.

        Args:
            trial: It is about to be counted.
            given: Its input; None where there is none to show.

        Raises:
            OSError: The log cannot be written.
        """
        key = trial.traceback
        if self._unwritten and key in self._unwritten:
            if self._log is not None:
                self._log.append({"hash": key, "traceback": self._tracebacks[key]})
            self._unwritten.remove(key)
        place = trial.experiment, trial.input_id
        if given is not None and self._excerpts.keeps_inputs and place not in self._inputs:
            self._keep_input(place, given)

    def _keep_input(self, place: tuple[str, str], given: model.Input) -> None:
        write = self._excerpts.value
        asked = AskedInput(
            value=write(given.value),
            expected=None if given.expected is None else write(given.expected),
            metadata=write(dict(given.metadata)) if given.metadata else None,
        )
        line = input_line(*place, asked, self._contents)
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

    def sync(self) -> None:
        """Make everything that was kept survive a power cut."""
        if self._log is not None:
            self._log.sync()

    @property
    def texts(self) -> RunTexts:
        """Return all kept texts."""
        return RunTexts(inputs=self._inputs, tracebacks=self._tracebacks)


#: The roles of messages that hold what a developer tells the model.
_INSTRUCTIONS = ("system", "developer")

#: Upper limit on the characters of a message, an explanation, or a text in a tool call.
_LONGEST_TEXT = 4000


class Excerpts:
    """Texts as records hold them.

    >>> excerpts = Excerpts(reply_limit=6, redact=lambda text: text.replace("hunter2", "***"))
    >>> excerpts.reply(model.Reply(value="hunter2 is it"))
    '*** i…'

    Args:
        reply_limit: How many characters of a reply are kept at most; 0 keeps none.
        redact: Takes secrets out of a text, before it is shortened: half of one is not recognised.
        keeps_inputs: Whether what the service was asked may be kept.
    """

    def __init__(
        self, *, reply_limit: int, redact: Callable[[str], str] | None, keeps_inputs: bool = True
    ) -> None:
        self._reply_limit = require_count("reply_limit", reply_limit)
        self.keeps_inputs = keeps_inputs
        self._redact = redact

    def text(self, text: str, limit: int = _LONGEST_TEXT) -> str:
        """Return a text as a record may hold it: plain, whatever class of text it was."""
        if type(text) is not str:
            text = str.__str__(text)
        if self._redact is not None:
            text = self._redact(text)
        if len(text) > limit:
            text = text[: limit - 1] + "…"
        return text if text.isascii() else _encodable(text)

    def reply(self, reply: model.Reply) -> str | None:
        """Return a reply's text."""
        if not self._reply_limit:
            return None
        value = reply.value
        if type(value) is not str:
            value = self._write(value)
        elif self._redact is None and len(value) <= self._reply_limit and value.isascii():
            return value  # nothing is changed, and this runs for every trial
        return self.text(value, self._reply_limit)

    def whole(self, reply: model.Reply) -> dict[str, Any] | None:
        """Return a reply in plain values; None where its text says all of it.

        They are empty where JSON cannot carry them, or where they may not be kept.
        """
        written = write_reply(reply)
        value = written.pop("value")
        del written["latency_s"]  # which the trial has
        fields = {name: one for name, one in written.items() if one not in (None, {})}
        if type(value) is not str or value != self.reply(reply):
            fields["value"] = value
        with suppress(Exception):  # objects among the details may raise anything
            fields["details"] = {
                name: one.to_dict() if hasattr(one, "to_dict") else one
                for name, one in fields["details"].items()
            }
        is_hidden = not self._reply_limit or ("details" in fields and not self.keeps_inputs)
        if is_hidden or unplain(fields):
            return {}
        # Through JSON: a subclass of text or a number may carry what no process can send.
        plain = json.loads(json.dumps(redact_values(fields, self._redact)))
        return cast("dict[str, Any]", plain) or None

    def value(self, value: object) -> str:
        """Return an input or an expected answer as text."""
        return self.text(self._write(value))

    def _write(self, value: object) -> str:
        """Return a value as text; JSON escapes quotes, so secrets are taken out before."""
        plain = isinstance(value, dict | list)
        return _write_value(redact_values(value, self._redact) if plain else value)

    def tool_calls(self, reply: model.Reply) -> tuple[Mapping[str, Any], ...]:
        """Return the tool calls a reply reports, or none where JSON cannot carry them."""
        calls = reply.details.get("tool_calls")
        if calls is None and "trace" in reply.details:
            calls = _read_tool_calls(reply)
        if not isinstance(calls, list | tuple) or not all(isinstance(c, Mapping) for c in calls):
            return ()
        try:
            plain = redact_values([dict(call) for call in calls], self.text)
        except RecursionError:
            return ()
        # Through JSON: a subclass of text or a number may carry what no process can send.
        return () if unplain(plain) else tuple(json.loads(json.dumps(plain)))

    def messages(self, turns: Iterable[model.Turn]) -> tuple[tuple[str, str], ...]:
        """Return the messages of a session as pairs of role and text.

        The system's instructions are left out: they belong to the service and are the same in
        every trial. What the model was asked is left out where a run does not keep its inputs.
        """
        if not self._reply_limit:
            return ()
        return tuple(
            (self.text(turn.role), self.text(turn.content, self._reply_limit))
            for turn in turns
            if turn.role == MODEL or (self.keeps_inputs and turn.role not in _INSTRUCTIONS)
        )

    def result(self, result: model.CheckResult) -> model.CheckResult:
        """Return a failed postcondition's result."""
        explanation, evidence = self.text(str(result.explanation)), self.text(str(result.evidence))
        if explanation is result.explanation and evidence is result.evidence:
            return result
        return replace(result, explanation=explanation, evidence=evidence)


def error_text(error: BaseException) -> str:
    """Return what an exception says, with its kind where that is not ours."""
    try:
        said = str(error)
    except (Exception, SystemExit):  # its own __str__ may raise anything
        said = ""
    # A failure that is played back names the kind it had.
    kind = getattr(error, "original_type", "").rpartition(".")[2]
    if not kind and isinstance(error, TrialwiseError):
        return said
    return ": ".join(filter(None, (kind or type(error).__name__, said)))


def _read_tool_calls(reply: model.Reply) -> object:

    try:
        trace = model.Trace.of(reply)
    except Exception:  # a trace of somebody else's making may raise anything
        return None
    return None if trace is None else [call.to_dict() for call in trace.tool_calls]


def _write_value(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        with suppress(TypeError, ValueError, RecursionError):
            return json.dumps(value, ensure_ascii=False)
    try:
        return str(value)
    except Exception as error:  # a reply's own __str__ may raise anything
        return f"<{type(value).__name__}, whose text raised {type(error).__name__}>"


def _encodable(text: str) -> str:
    """Text that UTF-8 can carry: half a surrogate pair becomes a replacement character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
