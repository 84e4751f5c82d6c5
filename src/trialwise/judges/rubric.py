"""A judge: a rubric and a panel of models, as a postcondition.

The one kind of postcondition that can be wrong about a reply. Until its errors have been measured
against people's labels, a criterion that rests on it can only advise (`advisory`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

from trialwise.checks.check_base import Check, Unreadable, failed, printable
from trialwise.checks.reply_reading import expected_of, text_of
from trialwise.engine.criterion_progress import derive_seed
from trialwise.engine.ports import Service, SystemClock, Timer, gather
from trialwise.errors import InvalidArgument
from trialwise.judges import jurors as panel
from trialwise.judges import votes as voting
from trialwise.judges.calibration import Calibration, GoldFiles
from trialwise.model.fingerprint import fingerprint
from trialwise.model.reply import Reply
from trialwise.model.trial import Appraisal, CheckResult, ErrorClass, FailReason
from trialwise.stats.agreement import Confusion
from trialwise.validation import require_count, require_text

_NEVER_MEASURED = (
    "the judge has no gold set: nobody has measured how often it is wrong, so its verdict advises"
)
_NOT_YET = "the judge was not calibrated yet: run `trialwise judge calibrate`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge(Check, spelling="judge"):
    """A rubric, put to one or several jurors; made by `judge`."""

    rubric: str
    jurors: tuple[panel.Juror, ...]
    votes: int
    """Asked for in turn: the first juror again after the last."""
    quorum: Fraction | None
    """The share of votes that pass; None for more than half."""
    shows_input: bool
    shows_expected: bool
    """Whether the jurors see what a right reply says; every input has to say it then."""
    output_limit: int
    labels_count_as_trials: bool = field(compare=False)
    """Whether the gold set was drawn from the service as it is now, like the trials."""
    title: str
    calibration: Calibration | None = field(compare=False)
    files: GoldFiles | None = field(compare=False)
    """Where its gold set lies, for the command that calibrates it."""
    asking: panel.Asking = field(compare=False)
    expenses: panel.Expenses = field(default_factory=panel.Expenses, compare=False, repr=False)
    """What its jurors took so far, apart from the service's own."""

    def __post_init__(self) -> None:
        require_text("rubric", self.rubric, "be a text that says what passes")
        if not self.jurors:
            raise InvalidArgument("jurors", self.jurors, "hold at least one")
        require_count("votes", self.votes, minimum=1)
        require_count("output_limit", self.output_limit, minimum=1)
        names = [juror.name for juror in self.jurors]
        if len(set(names)) < len(names):
            allowed = "have different names; `votes` asks one of them several times"
            raise InvalidArgument("jurors", names, allowed)

    @property
    def name(self) -> str:
        """The name in reports."""
        return self.title or f"judged: {printable(self.rubric, 60)}"

    @property
    def identity(self) -> str:
        """A fingerprint of everything that bears on its verdicts: a calibration belongs to one."""
        return fingerprint([self.to_dict(), voting.PROMPT_VERSION])

    @property
    def advisory(self) -> tuple[str, ...]:
        """Why a criterion that rests on it can only advise; nothing where it may decide."""
        if self.calibration is None:
            return (_NEVER_MEASURED if self.files is None else _NOT_YET,)
        return self.calibration.marks(judge=self.identity)

    @property
    def errors(self) -> Confusion | None:
        """Its verdicts beside people's labels, where they are good enough to decide by."""
        measured = self.calibration
        return None if measured is None or self.advisory else measured.confusion

    def to_dict(self) -> dict[str, Any]:
        """Return the judge as a suite file spells it, its jurors by their names."""
        quorum = voting.MAJORITY if self.quorum is None else str(self.quorum)
        # Left out where it is not so: judges that were measured before it existed are the same.
        shows_expected = {"shows_expected": True} if self.shows_expected else {}
        return {
            self.spelling: {
                "rubric": self.rubric,
                "jurors": [juror.name for juror in self.jurors],
                "votes": self.votes,
                "quorum": quorum,
                "shows_input": self.shows_input,
                **shows_expected,
                "output_limit": self.output_limit,
            }
        }

    def _examine(self, reply: Reply) -> CheckResult:
        """Wait for the panel here: for scripts, where no event loop runs."""
        import asyncio

        from anyio import run

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return run(self._once, reply).result
        raise Unreadable("a judge has to be awaited: use `acheck`")

    async def acheck(self, reply: Reply, *, seed: int = 0) -> Appraisal:
        """Return what the panel says of a reply, and what asking took.

        Args:
            reply: What is judged; its details may hold the trial's `input`, and have to hold what
                is `expected` where the judge shows it.
            seed: Decides whether a juror sees the rubric before the material or behind it.
        """
        try:
            output = text_of(reply)
            expected = expected_of(reply) if self.shows_expected else None
        except Unreadable as error:
            return Appraisal(result=failed(error.explanation, reason=error.reason))
        expenses = panel.Expenses()
        given = reply.details.get("input") if self.shows_input else None
        answers = await gather(
            [
                partial(self._vote, place, output, (given, expected), seed, expenses)
                for place in range(self.votes)
            ]
        )
        self.expenses.take(expenses)
        votes = [None if one.value is None else one.value.passed for one in answers]
        passed = voting.decide_panel(votes, self.quorum)
        told: dict[str, Any] = {"usage": expenses.usage, "cost_usd": expenses.usd}
        if passed is None:
            result, error_class = _unknown(answers)
            return Appraisal(result=result, error_class=error_class, **told)
        # Where it grades, its score is the share of votes that pass.
        known = [vote for vote in votes if vote is not None]
        result = CheckResult.ok() if passed else self._refusal(answers)
        return Appraisal(result=replace(result, score=sum(known) / len(known)), **told)

    async def aclose(self) -> None:
        """Close the jurors' connections; a later question opens new ones."""
        for juror in self.jurors:
            await juror.service.aclose()

    async def _once(self, reply: Reply) -> Appraisal:
        try:
            return await self.acheck(reply)
        finally:
            await self.aclose()

    async def _vote(
        self, place: int, output: str, beside: tuple[Any, Any], seed: int, expenses: panel.Expenses
    ) -> panel.Answer:
        given, expected = beside
        own = derive_seed("vote", seed, str(place))
        messages = voting.judgement_messages(
            self.rubric,
            output,
            given=given,
            expected=expected,
            limit=self.output_limit,
            rubric_first=bool(own & 1),
        )
        # The rubric may stand before or behind: the question is the same.
        question = {
            "rubric": self.rubric,
            "material": [_seen(one, self.output_limit) for one in (given, output)],
            "vote": place // len(self.jurors),
        }
        if expected is not None:
            question["expected"] = _seen(expected, self.output_limit)
        return await self.asking.ask(
            self.jurors[place % len(self.jurors)],
            messages,
            question,
            voting.read_vote,
            seed=own,
            expenses=expenses,
        )

    def _refusal(self, answers: list[panel.Answer]) -> CheckResult:
        against = [one for one in answers if one.value is not None and not one.value.passed]
        needed = voting.votes_needed(self.votes, self.quorum)
        counted = f"{self.votes - len(against)} of {self.votes} votes pass, {needed} needed"
        if any(one.value is None for one in answers):
            counted = f"{len(against)} of {self.votes} votes fail, {needed} passes needed"
        if self.votes == 1:
            counted = "the judge says no"
        first = against[0]
        said = f": {first.value.reasoning}" if first.value.reasoning else ""
        return failed(f"{counted}{said}")


def judge(
    rubric: str,
    *jurors: panel.Juror | Service,
    votes: int | None = None,
    quorum: str | float | Fraction = voting.MAJORITY,
    shows_input: bool = True,
    shows_expected: bool = False,
    output_limit: int = panel.OUTPUT_LIMIT,
    labels_count_as_trials: bool = False,
    timeout_s: float = panel.TIMEOUT_S,
    retries: int = panel.RETRIES,
    cache: panel.VoteCache | None = None,
    calibration: Calibration | None = None,
    files: GoldFiles | None = None,
    name: str = "",
    clock: Timer | None = None,
) -> Judge:
    """Return a postcondition that asks models whether a reply meets a rubric.

    A vote that nobody gives, because a juror is late, unreachable or answers in another form,
    counts neither way; where such votes could decide, the trial fails this criterion with the
    reason `transform` and the error class `infrastructure`.

    Args:
        rubric: What the reply has to meet, in words; all of it.
        jurors: Services that answer a conversation, such as `ChatService`.
        votes: How many are asked for; by default one of each juror.
        quorum: The share that has to pass: "majority" is more than half, so that a tie fails;
            "1/2" lets a tie pass. Write "2/3", not 0.67, which two of three are not.
        shows_input: Whether the jurors see what the service was asked.
        shows_expected: Whether they see what a right reply says (`Input.expected`), as the
            reference; a contract with an input that has none is refused.
        output_limit: The most characters of the reply, of the input and of the reference that
            they see.
        labels_count_as_trials: Whether the labelled outputs are those of the service as it is now,
            drawn like the trials. The labels are then evidence for the rate, and a decision takes
            fewer trials. Labels of an older version would count for the new one.
        timeout_s: The most seconds of one call.
        retries: Further calls after one that failed.
        cache: Where votes are kept by content; None keeps none.
        calibration: How often the judge is wrong; without one its verdict only advises.
        files: Where its gold set and its calibration lie, for `trialwise judge calibrate`.
        name: How reports call it.
        clock: For the waits between calls.

    >>> from trialwise.services import CallableService
    >>> kind = CallableService(lambda messages: '{"pass": true, "reasoning": "why not"}')
    >>> polite = judge("The answer is polite.", kind, name="polite")
    >>> polite.check(Reply(value="You are welcome.")).passed, len(polite.advisory)
    (True, 1)
    """
    several = tuple(panel.juror_of(one) for one in jurors)
    return Judge(
        rubric=rubric,
        jurors=several,
        votes=len(several) if votes is None else votes,
        quorum=voting.quorum_of(quorum),
        shows_input=shows_input,
        shows_expected=shows_expected,
        output_limit=output_limit,
        labels_count_as_trials=labels_count_as_trials,
        title=name,
        calibration=calibration,
        files=files,
        asking=panel.Asking(
            timeout_s=timeout_s, retries=retries, cache=cache, clock=clock or SystemClock()
        ),
    )


def _seen(value: Any, limit: int) -> list[Any] | None:
    """Return what a juror sees of a value, for the cache."""
    if value is None:
        return None
    text = voting.shown_text(value)
    return [text[:limit], len(text)]


def _unknown(answers: list[panel.Answer]) -> tuple[CheckResult, ErrorClass]:
    missing = [one for one in answers if one.value is None]
    first = missing[0]
    counted = f"{len(missing)} of {len(answers)} votes are missing; " if len(answers) > 1 else ""
    result = failed(
        f"no verdict: {counted}{first.juror}: {first.error}", reason=FailReason.TRANSFORM
    )
    broken = all(one.error_class is ErrorClass.PRE_VALIDATION for one in missing)
    return result, ErrorClass.PRE_VALIDATION if broken else ErrorClass.INFRASTRUCTURE
