"""One call with one input and one seed: what came back, and what each criterion says of it.

Every trial counts. A trial without a testable value is a failure like any other; its reason says
that it was not the condition that failed (companion §1.4.5a).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from sys import intern
from typing import TYPE_CHECKING, Any

# A trial is known with what is said of it: whoever imports the one imports the others from here.
from trialwise.model.outcome import CheckResult as CheckResult  # noqa: PLC0414
from trialwise.model.outcome import ErrorClass as ErrorClass  # noqa: PLC0414
from trialwise.model.outcome import FailReason as FailReason  # noqa: PLC0414
from trialwise.model.outcome import OtherCheck as OtherCheck  # noqa: PLC0414
from trialwise.model.outcome import Outcome as Outcome  # noqa: PLC0414
from trialwise.model.reply import Reply, Usage, read_reply

if TYPE_CHECKING:
    from trialwise.stats import TraceShape


#: The role of the model's own messages.
MODEL = "assistant"

#: Classes that say nothing about the service: such a trial is asked again.
NOT_MEASURED = frozenset(
    {ErrorClass.INFRASTRUCTURE, ErrorClass.PRE_VALIDATION, ErrorClass.CONFIGURATION}
)
#: Classes of trials that the per-protocol rate leaves out, because they say nothing about replies.
EXCUSED = NOT_MEASURED | {ErrorClass.EMPTY_RUN, ErrorClass.NO_EVIDENCE}
#: Why a criterion fails without having reached its condition.
UNTESTABLE = frozenset(FailReason) - {FailReason.CONDITION}


class Analysis(StrEnum):
    """Whose trials decide."""

    MEASURED = "measured"
    """Those that say something about the service: what never reached it is asked again."""
    INTENT_TO_TREAT = "intent-to-treat"
    """All of them: how reliable is the whole pipeline?"""
    PER_PROTOCOL = "per-protocol"
    """Only the trials that were measured; empty runs are left out as well."""

    def leaves_out(self, error_class: ErrorClass) -> bool:
        """Return whether a trial of this class takes no part in the decision.

        >>> Analysis.MEASURED.leaves_out(ErrorClass.INFRASTRUCTURE)
        True
        >>> Analysis.MEASURED.leaves_out(ErrorClass.EMPTY_RUN)
        False
        """
        return error_class in _LEFT_OUT[self]

    @property
    def counts_silence(self) -> bool:
        """Whether a trial counts as failed that a judge gave no verdict on.

        A judge may be silent on just the replies that are bad, so that leaving them out is a
        choice that somebody has to make.
        """
        return self is not Analysis.PER_PROTOCOL


_LEFT_OUT: Mapping[Analysis, frozenset[ErrorClass]] = {
    Analysis.MEASURED: NOT_MEASURED,
    Analysis.INTENT_TO_TREAT: frozenset(),
    Analysis.PER_PROTOCOL: EXCUSED,
}


# Not frozen, only without anything that sets a field: there may be a million, and freezing would
# triple what making one takes.
@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Trial:
    """A completed trial, in the form that is journalled and decided."""

    experiment: str
    index: int
    """Its place in the order of inputs of its experiment, from 0."""
    input_id: str
    seed: int
    outcomes: tuple[Outcome, ...]
    """One per criterion of the experiment, in the contract's order."""
    error_class: ErrorClass = ErrorClass.NONE
    error: str = ""
    """What went wrong with the call, for a person."""
    latency_s: float | None = None
    """None where there was no reply."""
    usage: Usage | None = None
    cost_usd: float | None = None
    setup_s: float | None = None
    """Preparation the service reports, kept apart from the trial itself."""
    setup_usage: Usage | None = None
    setup_cost_usd: float | None = None
    judging_usage: Usage | None = None
    """What its judges took, kept apart from what the service took."""
    judging_cost_usd: float | None = None
    attempts: int = 1
    """Transport tries; more than one means a retry after an infrastructure error."""
    attempt_errors: tuple[str, ...] = ()
    """What the failed attempts before the last one said."""
    started_s: float = 0.0
    """Since the run began, by the monotonic clock."""
    reply: str | None = None
    """The reply as text, shortened and redacted, for people to read."""
    whole: Mapping[str, Any] | None = field(default=None, hash=False)
    """The reply in plain values, where its text does not say all; empty where it is not kept."""
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    messages: tuple[tuple[str, str], ...] = ()
    """The messages of the session in order, each with its role, shortened and redacted."""
    shape: TraceShape | None = None
    """The counts of the session that stability is computed from; None where none was told."""
    ended: str | None = None
    """How the session ended, where its trace tells, such as `answer` or `max-turns`."""
    exit_code: int | None = None
    traceback: str = ""
    """The hash of where the service or a check raised, by which the run's texts are asked."""

    def __repr__(self) -> str:
        failed = [one for one in self.outcomes if not one.passed]
        why = "".join(f"; {one.criterion}: {one.result.explanation[:80]}" for one in failed)
        what = f"{'failed' if failed else 'passed'}, input {self.input_id!r}, seed {self.seed}"
        return f"<Trial {self.index} {what}{why}>"

    def rebuild_reply(self) -> Reply | None:
        """Return the reply as the checks saw it; None where there was none, or it is not kept.

        Secrets that the run takes out of its texts are not in it.
        """
        is_kept = self.reply is not None if self.whole is None else bool(self.whole)
        if self.latency_s is None or not is_kept:
            return None
        text = {"value": self.reply, "latency_s": self.latency_s}
        return read_reply(text | dict(self.whole or {}))

    @property
    def passed(self) -> bool:
        """Whether every criterion passed: the success that latency is conditional on."""
        return all(outcome.result.passed for outcome in self.outcomes)

    @property
    def is_excused(self) -> bool:
        """Whether the per-protocol analysis leaves it out."""
        return self.error_class in EXCUSED

    def is_unjudged(self, outcome: Outcome) -> bool:
        """Return whether the service replied, and one criterion could not be measured.

        A judge gave no verdict, or what was recorded of the reply does not tell.
        """
        return outcome.error_class in EXCUSED and self.error_class not in EXCUSED

    def is_unheard(self, outcome: Outcome) -> bool:
        """Return whether a criterion failed without anything that a judge could judge."""
        untestable = outcome.result.reason in UNTESTABLE and not self.is_unjudged(outcome)
        return self.error_class is not ErrorClass.NONE or untestable

    def outcome(self, criterion: str) -> Outcome:
        """Return what one criterion says of it."""
        return next(one for one in self.outcomes if one.criterion == criterion)

    def to_dict(self) -> dict[str, Any]:
        """Return the trial as plain values for a journal line: what is usual is left out.

        >>> trial = Trial(experiment="inputs", index=0, input_id="1", seed=7, outcomes=())
        >>> Trial.from_dict(trial.to_dict(), experiment="inputs", criteria=()) == trial
        True
        """
        outcomes = self.outcomes
        line: dict[str, Any] = {"i": self.index, "in": self.input_id, "seed": self.seed}
        # One character a criterion: most trials pass, and a journal may hold 100,000 of them.
        line["ok"] = "".join(["1" if one.result.passed else "0" for one in outcomes])
        if "0" in line["ok"]:
            line["failed"] = [
                [
                    k,
                    one.result.reason,
                    one.postcondition,
                    one.result.explanation,
                    one.result.evidence,
                    # A judge's trouble is its criterion's own; all else is the trial's.
                    *(() if one.error_class is self.error_class else (one.error_class.value,)),
                ]
                for k, one in enumerate(outcomes)
                if not one.result.passed
            ]
            line |= _other_entries(outcomes)
        scores = [
            [k, one.result.score, *one.marks]
            for k, one in enumerate(outcomes)
            if one.result.score is not None
        ]
        if scores:
            line["scores"] = scores
        if self.latency_s is not None:
            line["latency_s"] = self.latency_s
        if self.started_s:
            line["at"] = self.started_s
        if self.reply is not None:
            line["reply"] = self.reply
        if self.whole is not None:
            line["whole"] = dict(self.whole)
        if self.error_class is not ErrorClass.NONE or self.attempts > 1:
            line |= self._troubles()
        if self.has_expenses:
            line |= self._expenses()
        if self.error:
            line["error"] = self.error
        if self.has_session:
            line |= self._session()
        if self.exit_code is not None:
            line["exit"] = self.exit_code
        if self.traceback:
            line["raised"] = self.traceback
        return line

    @property
    def has_session(self) -> bool:
        """Whether anything is kept of what an agent did in it."""
        return bool(
            self.tool_calls or self.messages or self.shape is not None or self.ended is not None
        )

    def _session(self) -> dict[str, Any]:
        found = (
            ("tool_calls", [dict(call) for call in self.tool_calls] or None),
            ("messages", [list(message) for message in self.messages] or None),
            ("shape", None if self.shape is None else _counts(self.shape)),
            ("ended", self.ended),
        )
        return {name: value for name, value in found if value is not None}

    def _troubles(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.error_class is not ErrorClass.NONE:
            found["class"] = self.error_class.value
        if self.attempts > 1:
            found |= {"attempts": self.attempts, "attempt_errors": list(self.attempt_errors)}
        return found

    @property
    def has_expenses(self) -> bool:
        """Whether anything says what it took; asked first, since most trials do not."""
        return not (
            self.usage is None
            and self.cost_usd is None
            and self.setup_s is None
            and self.judging_usage is None
            and self.judging_cost_usd is None
        )

    def _expenses(self) -> dict[str, Any]:
        found = (
            ("usage", _pair(self.usage)),
            ("cost_usd", self.cost_usd),
            ("setup_s", self.setup_s),
            ("setup_usage", _pair(self.setup_usage)),
            ("setup_cost_usd", self.setup_cost_usd),
            ("judging_usage", _pair(self.judging_usage)),
            ("judging_cost_usd", self.judging_cost_usd),
        )
        return {name: value for name, value in found if value is not None}

    @classmethod
    def from_dict(
        cls, line: Mapping[str, Any], *, experiment: str, criteria: tuple[str, ...]
    ) -> Trial:
        """Return the trial that `to_dict` wrote.

        Args:
            line: The plain values.
            experiment: The experiment it belongs to.
            criteria: The experiment's criteria, in the contract's order.
        """
        error_class = ErrorClass(line["class"]) if "class" in line else ErrorClass.NONE
        return cls(
            # One text for all trials of an experiment, and for all of an input.
            experiment=intern(experiment),
            index=line["i"],
            input_id=intern(line["in"]),
            seed=line["seed"],
            outcomes=_read_outcomes(line, criteria, error_class),
            error_class=error_class,
            error=line.get("error", ""),
            latency_s=line.get("latency_s"),
            usage=_usage(line.get("usage")),
            cost_usd=line.get("cost_usd"),
            setup_s=line.get("setup_s"),
            setup_usage=_usage(line.get("setup_usage")),
            setup_cost_usd=line.get("setup_cost_usd"),
            judging_usage=_usage(line.get("judging_usage")),
            judging_cost_usd=line.get("judging_cost_usd"),
            attempts=line.get("attempts", 1),
            attempt_errors=tuple(line.get("attempt_errors", ())),
            started_s=line.get("at", 0.0),
            reply=line.get("reply"),
            whole=line.get("whole"),
            tool_calls=tuple(line.get("tool_calls", ())),
            messages=tuple((role, text) for role, text in line.get("messages", ())),
            shape=_shape(line.get("shape")),
            ended=line.get("ended"),
            exit_code=line.get("exit"),
            traceback=line.get("raised", ""),
        )


def _pair(usage: Usage | None) -> list[int] | None:
    return None if usage is None else [usage.input_tokens, usage.output_tokens]


def _usage(pair: list[int] | None) -> Usage | None:
    return None if pair is None else Usage(input_tokens=pair[0], output_tokens=pair[1])


def _counts(shape: TraceShape) -> list[Any]:
    calls = (shape.total_calls, shape.distinct_calls, shape.distinct_tools)
    return [*calls, list(shape.assistant_lengths), shape.tokens]


def _shape(counts: list[Any] | None) -> TraceShape | None:
    if counts is None:
        return None
    # Few services tell their sessions, and every journal is read by way of here.
    from trialwise.stats.trace_shape import TraceShape

    total, distinct, tools, lengths, tokens = counts
    return TraceShape(
        total_calls=total,
        distinct_calls=distinct,
        distinct_tools=tools,
        assistant_lengths=tuple(lengths),
        tokens=tokens,
    )


#: What the line of a trial holds that says more of its criteria than that they passed.
_TOLD = frozenset({"failed", "also", "scores"})


def _other_entries(outcomes: tuple[Outcome, ...]) -> dict[str, Any]:
    """Return what the postconditions after the first that failed said, where there are any."""
    found = [
        [place, other.postcondition]
        if (said := other.result) is None
        else [place, other.postcondition, said.reason, said.explanation, said.evidence]
        for place, outcome in enumerate(outcomes)
        for other in outcome.others
    ]
    return {"also": found} if found else {}


def _other(
    postcondition: str, reason: str | None = None, explanation: str = "", evidence: str = ""
) -> OtherCheck:
    result = None
    if reason is not None:
        result = CheckResult.fail(explanation, evidence=evidence, reason=FailReason(reason))
    return OtherCheck(postcondition=postcondition, result=result)


def _read_outcomes(
    line: Mapping[str, Any], criteria: tuple[str, ...], error_class: ErrorClass
) -> tuple[Outcome, ...]:
    if not line.keys() & _TOLD:
        return _all_passed(criteria, error_class)
    failures = {entry[0]: entry[1:] for entry in line.get("failed", ())}
    also: dict[int, list[OtherCheck]] = {}
    for place, *entry in line.get("also", ()):
        also.setdefault(place, []).append(_other(*entry))
    outcomes = [
        _outcome(name, failures.get(k), error_class, tuple(also.get(k, ())))
        for k, name in enumerate(criteria)
    ]
    for place, score, *marks in line.get("scores", ()):
        outcomes[place] = grade_outcome(outcomes[place], float(score), tuple(map(float, marks)))
    return tuple(outcomes)


def grade_outcome(outcome: Outcome, score: float, marks: tuple[float, ...] = ()) -> Outcome:
    """Return an outcome with its score, and with the one that each grader gave."""
    return replace(outcome, result=replace(outcome.result, score=score), marks=marks)


@lru_cache(maxsize=32)
def _all_passed(criteria: tuple[str, ...], error_class: ErrorClass) -> tuple[Outcome, ...]:
    """Return the outcomes of a trial that passed: one tuple serves all of an experiment."""
    return tuple(_outcome(name, None, error_class, ()) for name in criteria)


def _outcome(
    criterion: str, failure: Any, error_class: ErrorClass, others: tuple[OtherCheck, ...]
) -> Outcome:
    if failure is None:
        return Outcome(criterion=criterion, result=CheckResult.ok(), error_class=error_class)
    reason, postcondition, explanation, evidence, *own = failure
    result = CheckResult.fail(explanation, evidence=evidence, reason=FailReason(reason))
    return Outcome(
        criterion=criterion,
        result=result,
        postcondition=postcondition,
        error_class=ErrorClass(own[0]) if own else error_class,
        others=others,
    )
