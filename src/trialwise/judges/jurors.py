"""Asking one juror: any service that answers a conversation, with its failures told from its votes.

A juror that is late, unreachable or does not answer in the form asked for is asked again and then
counts as missing. That is trouble of ours: never the fault of what is judged, and never a pass.

Answers are kept on disk by what was asked, so that the same question is paid for once, and only in
a folder that the user names. An answer is found by a hash of everything that bears on it: rubric,
input, reference, output, prompt, juror. Failures are not kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from trialwise.engine.excerpts import Excerpts
from trialwise.engine.ports import Service, ServiceError, SystemClock, Timer, TrialContext
from trialwise.errors import InvalidArgument
from trialwise.judges.votes import PROMPT_VERSION
from trialwise.model import ErrorClass, Reply, Usage
from trialwise.regular_files import read_regular
from trialwise.validation import require_count, require_positive, require_text

#: Twice the usual time of a long answer.
TIMEOUT_S = 60.0
RETRIES = 1
#: The most characters of an output that a juror is shown.
OUTPUT_LIMIT = 10_000
_EXCERPTS = Excerpts(reply_limit=0, redact=None)
_FORMAT = 1
#: Statuses that may be about one question only, so that they do not show a mistake in the setup.
_REFUSED_CONTENT = frozenset({400, 422})


@dataclass(frozen=True, slots=True)
class Juror:
    """A service that votes, and what it is called.

    The name stands for the juror in reports, caches and calibrations: another model, prompt or
    temperature is another juror and needs another name. By default it is the service's `repr`.
    """

    service: Service = field(compare=False)
    name: str = ""

    def __post_init__(self) -> None:
        if not callable(getattr(self.service, "call", None)):
            raise InvalidArgument("juror", self.service, "be a service, such as a ChatService")
        name = self.name or repr(self.service)
        require_text("name", name, "be a text that names the juror")
        if " at 0x" in name:
            allowed = "be given: the service's `repr` is another one in each process"
            raise InvalidArgument("name", name, allowed)
        object.__setattr__(self, "name", name)


def juror_of(given: Juror | Service) -> Juror:
    """Return a juror, or a service that becomes one under its own `repr`."""
    return given if isinstance(given, Juror) else Juror(given)


@dataclass(slots=True)
class Expenses:
    """What asking took so far."""

    asked: int = 0
    """Calls made, those that failed and those that were repeated included."""
    cached: int = 0
    """Votes that were found instead."""
    missing: int = 0
    """Votes that nobody gave."""
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    """None where no juror said what it cost."""

    def add(self, reply: Reply) -> None:
        """Count one answer."""
        if reply.usage is not None:
            self.input_tokens += reply.usage.input_tokens
            self.output_tokens += reply.usage.output_tokens
        if reply.cost_usd is not None:
            self.usd = (self.usd or 0.0) + float(reply.cost_usd)

    def take(self, other: Expenses) -> None:
        """Count what somebody else counted."""
        for name in self.__slots__:
            more = getattr(other, name)
            if more is not None:
                setattr(self, name, (getattr(self, name) or 0) + more)

    @property
    def usage(self) -> Usage | None:
        """Tokens, where any are known."""
        if not self.input_tokens and not self.output_tokens:
            return None
        return Usage(input_tokens=self.input_tokens, output_tokens=self.output_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of asking one juror."""

    juror: str
    value: Any = None
    """What was read from the answer; None where there was none."""
    error: str = ""
    error_class: ErrorClass = ErrorClass.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How jurors are asked.

    Args:
        timeout_s: The most seconds of one call.
        retries: Further calls after one that failed.
        cache: Where answers are kept; None keeps none.
        clock: For the waits between calls.
    """

    timeout_s: float = TIMEOUT_S
    retries: int = RETRIES
    cache: VoteCache | None = None
    clock: Timer = field(default_factory=SystemClock, compare=False, repr=False)

    def __post_init__(self) -> None:
        require_positive("timeout_s", self.timeout_s)
        require_count("retries", self.retries)

    async def ask(
        self,
        juror: Juror,
        messages: list[dict[str, str]],
        question: Mapping[str, Any],
        read: Callable[[str], Any],
        *,
        seed: int,
        expenses: Expenses,
    ) -> Answer:
        """One juror's answer, from the cache where it is there.

        Args:
            juror: Whom to ask.
            messages: The conversation.
            question: What bears on the answer, for the cache: no token and no order.
            read: Reads an answer; its `ValueError` ends the sentence "the answer …".
            seed: For the juror, and for the waits between calls.
            expenses: Where what it takes is counted.
        """
        # The version of the prompt belongs to the question: an old vote answers other words.
        key = content_key({**question, "juror": juror.name, "prompt": PROMPT_VERSION})
        found = self._find_kept(key, read)
        if found is not None:
            expenses.cached += 1
            return Answer(juror=juror.name, value=found)
        from trialwise.engine.attempt import Caller

        call = _Call(juror.service, read, self.timeout_s, expenses)
        caller = Caller(
            call, timeout_s=None, retries=self.retries, clock=self.clock, excerpts=_EXCERPTS
        )
        response = await caller.respond(0, messages, seed)
        if response.reply is None:
            expenses.missing += 1
            # Whatever went wrong, it was not the service under test that did.
            broken = response.error_class is ErrorClass.PRE_VALIDATION
            error_class = ErrorClass.PRE_VALIDATION if broken else ErrorClass.INFRASTRUCTURE
            return Answer(juror=juror.name, error=response.error, error_class=error_class)
        if self.cache is not None:
            self.cache.keep(key, response.reply.details["answer"])
        return Answer(juror=juror.name, value=response.reply.value)

    def _find_kept(self, key: str, read: Callable[[str], Any]) -> Any:
        answer = None if self.cache is None else self.cache.find(key)
        if answer is None:
            return None
        try:
            return read(answer)
        except ValueError:  # not as it was written: ask again
            return None


@dataclass(frozen=True, slots=True)
class _Call:
    """A juror as a service whose reply is what was read, and whose every failure is transport's."""

    service: Service
    read: Callable[[str], Any]
    timeout_s: float
    expenses: Expenses

    async def call(self, trial: TrialContext) -> Reply:
        from anyio import move_on_after

        self.expenses.asked += 1
        reply: Reply | None = None
        try:
            with move_on_after(self.timeout_s):
                reply = await self.service.call(trial)
        except ServiceError as error:
            error_class = _class_of_trouble(error)
            if error_class is error.error_class:
                raise
            raise ServiceError(str(error), error_class) from error
        finally:
            # What came to nothing was paid for as well.
            taken = trial.partial if reply is None else reply
            if taken is not None:
                self.expenses.add(taken)
        if reply is None:
            raise ServiceError(f"no answer within {self.timeout_s:g} s", ErrorClass.INFRASTRUCTURE)
        try:
            value, details = self.read(reply.text), {"answer": reply.text}
            return Reply(value=value, latency_s=reply.latency_s, details=details)
        except ValueError as error:
            raise ServiceError(f"the answer {error}", ErrorClass.INFRASTRUCTURE) from None

    async def aclose(self) -> None:
        """Do nothing: the caller that gave the service closes it."""


def _class_of_trouble(error: ServiceError) -> ErrorClass:
    """Return what an error of a service means if the service is a juror."""
    if error.error_class in (ErrorClass.TIMEOUT, ErrorClass.NONE):
        # Of the service under test these are failures; of a juror they are only a missing answer.
        return ErrorClass.INFRASTRUCTURE
    refused = error.error_class is ErrorClass.CONFIGURATION
    if refused and getattr(error, "status", None) not in _REFUSED_CONTENT:
        return ErrorClass.PRE_VALIDATION
    return error.error_class


class CacheUnusable(ServiceError):
    """The folder of cached votes cannot be written: every later vote would be paid for in vain."""

    stops_run = True


def content_key(question: Mapping[str, Any]) -> str:
    """Return the hash of a question, which does not depend on the order of its parts.

    >>> content_key({"a": 1, "b": 2}) == content_key({"b": 2, "a": 1})
    True
    """
    text = json.dumps(question, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return sha256(f"{_FORMAT}\n{text}".encode()).hexdigest()


class VoteCache:
    """A folder of answers, one small file each; several processes may share it.

    Args:
        folder: Made when the first answer is kept.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def find(self, key: str) -> str | None:
        """Find the answer that was kept under a key; a damaged file has none."""
        try:
            kept = json.loads(read_regular(self._path(key)))
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(kept, dict) or kept.get("key") != key:
            return None
        answer = kept.get("answer")
        return answer if isinstance(answer, str) else None

    def keep(self, key: str, answer: str) -> None:
        """Keep an answer: written beside its place and moved there, so that none is ever half one.

        Raises:
            CacheUnusable: The folder cannot be written.
        """
        path = self._path(key)
        # By process: two runs that share a cache must not write into one file at once.
        beside = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside.write_text(json.dumps({"key": key, "answer": answer}), encoding="utf-8")
            beside.replace(path)
        except OSError as error:
            message = (
                f"{self._folder}: answers cannot be kept: {error.strerror}. Name another folder as "
                "`cache`, or none."
            )
            raise CacheUnusable(message, ErrorClass.INFRASTRUCTURE) from error

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"

    def __repr__(self) -> str:
        return f"VoteCache({str(self._folder)!r})"
