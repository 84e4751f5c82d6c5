"""A judge as a postcondition, with scripted jurors behind the real wire protocol."""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from trialwise.errors import InvalidArgument
from trialwise.judges import CacheUnusable, Juror, VoteCache, judge
from trialwise.model.reply import Reply, Usage
from trialwise.model.trial import (
    Appraisal,
    AskingPostcondition,
    ErrorClass,
    FailReason,
    Postcondition,
)

pytestmark = pytest.mark.anyio

Start = Callable[[Callable[[Any], Any]], Any]
Says = Callable[..., str]
RUBRIC = "The answer is polite."
REPLY = Reply(value="You are welcome.", details={"input": "Thanks!"})


async def ask(*jurors: Any, reply: Reply = REPLY, seed: int = 7, **options: Any) -> Appraisal:
    """One appraisal, with the connections closed."""
    one = judge(RUBRIC, *jurors, **options)
    try:
        return await one.acheck(reply, seed=seed)
    finally:
        await one.aclose()


async def test_a_juror_gets_rubric_and_material_and_nothing_else(juror: Start, says: Says) -> None:
    """Two messages: what to do, and three sections word for word."""
    one = juror(lambda _: says(True))

    appraisal = await ask(one.service(temperature=0.0))

    (asked,) = one.asked
    assert appraisal.result.passed
    assert ["system", "user"] == [message["role"] for message in asked.messages]
    assert {"RUBRIC": RUBRIC, "INPUT": "Thanks!", "OUTPUT": "You are welcome."} == asked.sections
    assert "" == asked.outside
    assert {"model": "juror-1", "temperature": 0.0} == {
        name: value for name, value in asked.body.items() if name != "messages"
    }


async def test_what_is_not_text_is_shown_as_json(juror: Start, says: Says) -> None:
    """Inputs and replies of Python's; the input only where it is to be shown."""
    one = juror(lambda _: says(True))
    reply = Reply(value={"city": "Zürich"}, details={"input": {"ask": ["a", 1]}})

    await ask(one.service(), reply=reply)
    await ask(one.service(), reply=reply, shows_input=False)

    assert '{\n "ask": [\n  "a",\n  1\n ]\n}' == one.asked[0].sections["INPUT"]
    assert "{'city': 'Zürich'}" == one.asked[0].sections["OUTPUT"]
    assert {"RUBRIC", "OUTPUT"} == set(one.asked[1].sections)


async def test_a_refusal_says_why(juror: Start, says: Says) -> None:
    """The juror's reasoning, on one line and safe to print."""
    one = juror(lambda _: says(False, reasoning="rude\n\x1b[31mand loud"))

    result = (await ask(one.service())).result

    assert FailReason.CONDITION is result.reason
    assert r"the judge says no: rude\n\x1b[31mand loud" == result.explanation


@pytest.mark.slow
async def test_the_order_is_drawn_from_the_trials_seed(juror: Start, says: Says) -> None:
    """The rubric first or last, the same for the same seed, and for each vote by itself."""
    one = juror(lambda _: says(True))
    orders = []
    for seed in (*range(20), *range(20)):
        await ask(one.service(), seed=seed)
        orders.append(next(iter(one.asked[-1].sections)))

    assert orders[:20] == orders[20:]
    assert {"RUBRIC", "INPUT"} == set(orders)
    assert 3 < orders[:20].count("RUBRIC") < 17
    one.asked.clear()
    await ask(one.service(), votes=16)
    assert {"RUBRIC", "INPUT"} == {next(iter(asked.sections)) for asked in one.asked}


async def test_a_panel_asks_its_jurors_in_turn(juror: Start, says: Says) -> None:
    """Five votes of two jurors are three and two; all at once."""
    first, second = juror(lambda _: says(True)), juror(lambda _: says(False))

    appraisal = await ask(
        Juror(first.service(), "a"), Juror(second.service(), "b"), votes=5, quorum="3/5"
    )

    assert (3, 2) == (len(first.asked), len(second.asked))
    assert appraisal.result.passed
    refused = await ask(
        Juror(first.service(), "a"), Juror(second.service(), "b"), votes=5, quorum="4/5"
    )
    assert "3 of 5 votes pass, 4 needed: as the rubric says" == refused.result.explanation


async def test_what_asking_takes_is_counted_apart(juror: Start, says: Says) -> None:
    """Tokens and money of every call; the reply keeps its own."""
    one = juror(lambda _: says(True))
    reply = Reply(value="x", usage=Usage(input_tokens=5, output_tokens=5), cost_usd=0.5)
    asking = judge(RUBRIC, one.service(), votes=3)

    appraisal = await asking.acheck(reply, seed=1)
    await asking.acheck(reply, seed=2)
    await asking.aclose()

    assert Usage(input_tokens=3000, output_tokens=300) == appraisal.usage
    assert 3 * (0.001 + 0.0002) == pytest.approx(appraisal.cost_usd)
    assert (6, 0, 0) == (asking.expenses.asked, asking.expenses.cached, asking.expenses.missing)
    assert 6 * 0.0012 == pytest.approx(asking.expenses.usd)


def _always(said: Any, _: Any) -> Any:
    return said


async def test_an_answer_that_cannot_be_read_was_paid_for(juror: Start, no_waiting: Any) -> None:
    """Neither JSON of another form nor a response without a message is free of charge."""
    usage = {"prompt_tokens": 1000, "completion_tokens": 100}
    for said in ("I cannot say.", {"choices": [], "usage": usage}):
        one = juror(partial(_always, said))

        appraisal = await ask(one.service(), retries=0, clock=no_waiting)

        assert not appraisal.result.passed
        assert ErrorClass.INFRASTRUCTURE is appraisal.error_class
        assert pytest.approx(0.0012) == appraisal.cost_usd  # 1,000 at $1 and 100 at $2 a million


async def test_without_prices_the_cost_is_unknown(juror: Start, says: Says) -> None:
    """And not zero."""
    one = juror(lambda _: says(True))

    assert (await ask(one.service(prices=None))).cost_usd is None


# --- Trouble of the judge's -------------------------------------------------------


def scripted(*answers: Any) -> Callable[[Any], Any]:
    """One answer after another, the last one again and again."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


@pytest.mark.parametrize("trouble", [503, 429, 500, "I cannot say.", '{"pass": "maybe"}'])
async def test_trouble_is_tried_again(
    juror: Start, says: Says, no_waiting: Any, trouble: Any
) -> None:
    """A server that is down, and an answer in another form; both calls are paid for."""
    one = juror(scripted(trouble, says(True)))

    appraisal = await ask(one.service(), clock=no_waiting)

    assert appraisal.result.passed
    assert 2 == len(one.asked)
    assert appraisal.usage is not None
    assert (1000 if isinstance(trouble, int) else 2000) == appraisal.usage.input_tokens


@pytest.mark.parametrize(
    ("trouble", "calls", "expected"),
    [
        (503, 3, (ErrorClass.INFRASTRUCTURE, "answered 503")),
        ("no JSON", 3, (ErrorClass.INFRASTRUCTURE, "the answer holds no JSON object")),
        (401, 1, (ErrorClass.PRE_VALIDATION, "answered 401")),
        (400, 1, (ErrorClass.INFRASTRUCTURE, "answered 400")),
        ({"choices": []}, 1, (ErrorClass.INFRASTRUCTURE, "sent no message")),
    ],
)
async def test_no_verdict_is_neither_a_pass_nor_the_services_failure(
    juror: Start, no_waiting: Any, trouble: Any, calls: int, expected: tuple[ErrorClass, str]
) -> None:
    """The criterion fails for want of a verdict, with the class of the judge's own trouble."""
    one = juror(lambda _: trouble)
    error_class, said = expected

    appraisal = await ask(one.service(), retries=2, clock=no_waiting)

    assert not appraisal.result.passed
    assert FailReason.TRANSFORM is appraisal.result.reason
    assert error_class is appraisal.error_class
    assert "no verdict: " in appraisal.result.explanation
    assert said in appraisal.result.explanation
    assert calls == len(one.asked)


async def test_a_juror_that_is_late_is_trouble_too(juror: Start, no_waiting: Any) -> None:
    """By the judge's limit and by the service's own."""
    one = juror(lambda _: 5.0)

    by_judge = await ask(one.service(), timeout_s=0.05, retries=1, clock=no_waiting)
    by_service = await ask(one.service(timeout_s=0.05), retries=0, clock=no_waiting)

    assert ErrorClass.INFRASTRUCTURE is by_judge.error_class is by_service.error_class
    assert "no answer within 0.05 s" in by_judge.result.explanation
    # On a busy machine a request may not even have arrived before its time was up.
    assert len(one.asked) <= 3


async def test_nobody_there_is_trouble_too(no_waiting: Any) -> None:
    """A connection that is refused."""
    from trialwise.services import ChatService

    appraisal = await ask(
        ChatService("http://127.0.0.1:9/v1", "m", api_key_env=None), retries=0, clock=no_waiting
    )

    assert ErrorClass.INFRASTRUCTURE is appraisal.error_class


async def test_a_decided_panel_needs_no_missing_vote(
    juror: Start, says: Says, no_waiting: Any
) -> None:
    """Two of three are enough either way; one of each is no verdict."""
    good, bad, down = (
        juror(lambda _: says(True)),
        juror(lambda _: says(False)),
        juror(lambda _: 500),
    )

    async def panel(*servers: Any) -> Appraisal:
        jurors = [Juror(one.service(), f"{place}") for place, one in enumerate(servers)]
        return await ask(*jurors, retries=0, clock=no_waiting)

    assert (await panel(good, good, down)).result.passed
    refused = await panel(bad, bad, down)
    assert (FailReason.CONDITION, ErrorClass.NONE) == (refused.result.reason, refused.error_class)
    assert refused.result.explanation.startswith("2 of 3 votes fail, 2 passes needed")
    unknown = await panel(good, bad, down)
    assert ErrorClass.INFRASTRUCTURE is unknown.error_class
    assert not unknown.result.passed


async def test_nothing_is_asked_about_nothing(juror: Start, says: Says) -> None:
    """A reply without a value fails before anybody is paid."""
    one = juror(lambda _: says(True))

    appraisal = await ask(one.service(), reply=Reply(value=None))

    assert FailReason.NO_VALUE is appraisal.result.reason
    assert [] == one.asked


# --- The cache ----------------------------------------------------------------------


async def test_the_same_question_is_paid_for_once(juror: Start, says: Says, tmp_path: Path) -> None:
    """Whatever the seed and the order; another output, input, rubric or juror is another one."""
    one = juror(lambda _: says(False, reasoning="no"))
    cache = VoteCache(tmp_path / "votes")

    first = await ask(one.service(), cache=cache, seed=1)
    again = await ask(one.service(), cache=cache, seed=2)

    assert first.result == again.result
    assert (1, None, None) == (len(one.asked), again.usage, again.cost_usd)
    await ask(one.service(), cache=cache, reply=Reply(value="You are welcome!"))
    await ask(one.service(), cache=cache, reply=Reply(value="You are welcome."))
    await ask(one.service("juror-2"), cache=cache)
    other = judge(f"{RUBRIC} ", one.service(), cache=cache)
    await other.acheck(REPLY, seed=1)
    await other.aclose()
    assert 5 == len(one.asked)


async def test_votes_of_one_juror_are_votes_of_their_own(
    juror: Start, says: Says, tmp_path: Path
) -> None:
    """Three votes are three answers, also from the cache."""
    answers = iter([says(True), says(False), says(True)])
    one = juror(lambda _: next(answers))
    cache = VoteCache(tmp_path)

    for _ in range(2):
        asking = judge(RUBRIC, one.service(), votes=3, cache=cache)
        assert (await asking.acheck(REPLY, seed=3)).result.passed
        await asking.aclose()

    assert 3 == len(one.asked)
    assert 3 == asking.expenses.cached


@pytest.mark.parametrize("damage", ["", "{", '{"key": "other", "answer": "x"}', "answer"])
async def test_a_damaged_answer_is_asked_for_again(
    juror: Start, says: Says, tmp_path: Path, damage: str
) -> None:
    """And mended."""
    one = juror(lambda _: says(True))
    cache = VoteCache(tmp_path)
    await ask(one.service(), cache=cache)
    (file,) = tmp_path.glob("*/*.json")
    whole = file.read_text()
    if damage == "answer":
        damage = whole.replace("true", "maybe")
    file.write_text(damage)

    assert (await ask(one.service(), cache=cache)).result.passed
    assert 2 == len(one.asked)
    assert whole == file.read_text()


async def test_failures_are_not_kept(juror: Start, says: Says, tmp_path: Path) -> None:
    """What was down may be up again."""
    one = juror(scripted(500, says(True)))
    cache = VoteCache(tmp_path)

    first = await ask(one.service(), cache=cache, retries=0)
    second = await ask(one.service(), cache=cache, retries=0)

    assert (False, True) == (first.result.passed, second.result.passed)


async def test_a_cache_that_cannot_be_written_ends_the_run(
    juror: Start, says: Says, tmp_path: Path
) -> None:
    """Every later vote would be paid for in vain; the message says what to do."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    one = juror(lambda _: says(True))

    with pytest.raises(CacheUnusable, match="Name another folder") as caught:
        await ask(one.service(), cache=VoteCache(blocked))

    assert caught.value.stops_run


# --- What it is ---------------------------------------------------------------------


def test_a_judge_can_be_asked_from_a_script(juror: Start, says: Says) -> None:
    """Without an event loop `check` waits; it is a postcondition like any other."""
    one = judge(RUBRIC, juror(lambda _: says(True)).service(), name="polite")

    assert isinstance(one, Postcondition)
    assert isinstance(one, AskingPostcondition)
    assert one.check(REPLY).passed
    assert "polite" == one.name
    assert "judged: The answer is polite." == judge(RUBRIC, *one.jurors).name


async def test_inside_a_loop_it_has_to_be_awaited(juror: Start, says: Says) -> None:
    """And says so instead of blocking everything."""
    result = judge(RUBRIC, juror(lambda _: says(True)).service()).check(REPLY)

    assert FailReason.TRANSFORM is result.reason
    assert "acheck" in result.explanation


def test_another_rubric_juror_or_quorum_is_another_judge() -> None:
    """A calibration belongs to one of them; time limits and caches change no verdict."""
    service = _Silent()

    def identity(rubric: str = RUBRIC, name: str = "a", **options: Any) -> str:
        return judge(rubric, Juror(service, name), **options).identity

    others = [
        identity("The answer is rude."),
        identity(name="b"),
        identity(votes=3),
        identity(quorum="1/2"),
        identity(shows_input=False),
        identity(output_limit=100),
    ]
    assert len({identity(), *others}) == 7
    assert identity() == identity(timeout_s=1.0, retries=5, name="a")


def test_a_judge_without_a_gold_set_only_advises() -> None:
    """And says so."""
    (reason,) = judge(RUBRIC, _Silent()).advisory

    assert "nobody has measured" in reason


class _Silent:
    """A service that is never called."""

    async def call(self, trial: Any) -> Reply:
        raise AssertionError(trial)

    async def aclose(self) -> None:
        """Nothing to close."""

    def __repr__(self) -> str:
        return "silent"


@pytest.mark.parametrize(
    ("jurors", "options"),
    [
        ((), {}),
        ((_Silent(),), {"votes": 0}),
        ((_Silent(),), {"quorum": "2"}),
        ((_Silent(),), {"timeout_s": 0}),
        ((_Silent(),), {"retries": -1}),
        ((_Silent(),), {"output_limit": 0}),
        ((_Silent(), _Silent()), {}),
        (("gpt",), {}),
    ],
)
def test_what_is_no_judge_is_refused(jurors: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Before the first trial."""
    with pytest.raises(InvalidArgument):
        judge(RUBRIC, *jurors, **options)


def test_a_juror_has_a_name_that_stays() -> None:
    """An address in memory would be another juror, and another judge, every time."""

    class Nameless:
        call, aclose = _Silent.call, _Silent.aclose

    with pytest.raises(InvalidArgument, match="another one in each process"):
        judge(RUBRIC, Nameless())
    assert "mine" == judge(RUBRIC, Juror(Nameless(), "mine")).jurors[0].name
    assert "silent" == judge(RUBRIC, _Silent()).jurors[0].name


def test_a_rubric_says_something() -> None:
    """Blank ones pass nothing on."""
    with pytest.raises(InvalidArgument, match="rubric"):
        judge("  ", _Silent())


def test_a_quorum_may_be_a_fraction() -> None:
    """Exactly."""
    assert Fraction(2, 3) == judge(RUBRIC, _Silent(), quorum=Fraction(2, 3)).quorum


async def test_a_secret_of_the_jurors_stays_one(juror: Start, no_waiting: Any) -> None:
    """The key goes to the endpoint and into no message."""
    one = juror(lambda _: 401)
    secret = "sk-" + os.urandom(8).hex()
    service = one.service(api_key_env="JUDGE_KEY", environment={"JUDGE_KEY": secret})

    appraisal = await ask(service, clock=no_waiting)

    assert f"Bearer {secret}" == one.asked[0].key
    assert secret not in appraisal.result.explanation
