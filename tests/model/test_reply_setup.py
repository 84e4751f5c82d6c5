"""Setup is kept apart from the trial, and a reply knows its input only for postconditions."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import pytest

from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply, Setup, Usage


@pytest.mark.parametrize(
    "wrong", [{"seconds": -1.0}, {"seconds": float("nan")}, {"cost_usd": float("inf")}]
)
def test_setup_takes_amounts(wrong: dict[str, Any]) -> None:
    """Finite, and not below nothing."""
    with pytest.raises(InvalidArgument, match=r"seconds|cost_usd"):
        Setup(**wrong)


@pytest.mark.parametrize("cost", [-0.1, float("nan"), float("inf")])
def test_a_cost_is_an_amount_too(cost: float) -> None:
    """A journal cannot carry what is none."""
    with pytest.raises(InvalidArgument, match="cost_usd"):
        Reply(value="", cost_usd=cost)


def test_a_reply_with_its_input_is_otherwise_the_same() -> None:
    """Every field, whatever fields there will be; the original does not change."""
    reply = Reply(
        value="v",
        latency_s=1,
        usage=Usage(input_tokens=1),
        cost_usd=0.5,
        exit_code=2,
        details={"a": 1, "input": "theirs"},
        setup=Setup(seconds=3.0),
    )

    seen = reply.with_input("ours")

    assert {"a": 1, "input": "ours"} == seen.details
    assert {"a": 1, "input": "theirs"} == reply.details
    others = [one.name for one in fields(Reply) if one.name != "details"]
    assert [getattr(reply, name) for name in others] == [getattr(seen, name) for name in others]


@dataclass(frozen=True, slots=True, kw_only=True)
class Longer(Reply):
    """A reply of somebody's own."""

    more: str = ""


def test_a_reply_of_ones_own_stays_one() -> None:
    """With what it has beyond a reply."""
    seen = Longer(value="v", more="m").with_input("x")

    assert isinstance(seen, Longer)
    assert ("m", "x") == (seen.more, seen.details["input"])
