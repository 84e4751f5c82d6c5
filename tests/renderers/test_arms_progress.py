"""What is shown while arms are compared, in a log and in a terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pytest

import trialwise as tw
from trialwise.model.verdict import Decision
from trialwise.procedures.comparing.findings import ArmsRow
from trialwise.renderers.capabilities import Capabilities
from trialwise.renderers.progress import open_progress
from trialwise.renderers.progress_status import ArmsStanding


class Clock:
    """Stands still until it is told to go on."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


def standing(wins: Sequence[int], outcome: str | None = None, **more: float) -> ArmsStanding:
    rows = [
        ArmsRow(
            name=f"right, {name} against old",
            counts=f"{won + 1} discordant: {won} won, 1 lost",
            after=11 + won,
            outcome=outcome if name == "new" else None,
            decision=Decision.PASS if outcome and name == "new" else None,
        )
        for name, won in zip(("new", "newer"), wins, strict=True)
    ]
    return ArmsStanding(
        title="old / new / newer",
        unit="pair",
        done=max(one.after for one in rows),
        most=100,
        rows=rows,
        trials=60,
        usd=more.get("usd"),
    )


def test_a_log_has_a_line_for_every_tenth_and_every_decision() -> None:
    out, clock = io.StringIO(), Clock()
    log = open_progress(out, capabilities=Capabilities(), clock=clock)  # type: ignore[arg-type]
    for one in (standing([3, 2]), standing([4, 2]), standing([12, 2], "better", usd=0.5)):
        log.show(one)
    clock.now = 40.0
    log.show(standing([12, 3], "better"))
    log.close()

    assert [
        "old / new / newer: at most 100 pairs, 60 trials already run",
        (
            "old / new / newer: right, new against old: better after 23 pairs "
            "(13 discordant: 12 won, 1 lost)"
        ),
        "old / new / newer: 23/100 pairs, 60 trials, 0 s, $0.50, 1 of 2 decided",
        "old / new / newer: 23/100 pairs, 60 trials, 40 s, 1 of 2 decided",
    ] == out.getvalue().splitlines()


def test_a_terminal_shows_every_test_and_is_left_clean() -> None:
    out = io.StringIO()
    able = Capabilities(live=True, colour=True, unicode=True, width=72, height=10)
    shown = open_progress(out, capabilities=able, clock=Clock())  # type: ignore[arg-type]
    shown.show(standing([12, 2], "better"))
    text = out.getvalue()
    shown.close()

    assert "23/100 pairs · 60 trials · 0 s · 1 of 2 decided" in text
    assert "right, new against old    13 discordant: 12 won, 1 lost  \x1b[32mbetter" in text
    assert "right, newer against old  3 discordant: 2 won, 1 lost    \x1b[2mopen" in text
    assert out.getvalue().endswith("\x1b[J\x1b[?25h")


def test_one_comparison_is_shown_and_not_its_runs(capsys: pytest.CaptureFixture[str]) -> None:
    criterion = tw.Criterion("right", tw.equals("OK"), at_least=0.5)
    old = tw.Contract("agent", str.lower, [criterion], sampling=["ok"])
    new = old.with_service(str.upper)
    found = tw.compare(old, new, labels=["old", "new"], store=None, progress=True)
    shown = capsys.readouterr().err.splitlines()

    assert found.findings[0].pairs is not None
    pairs = found.findings[0].pairs.pairs
    assert shown[0].startswith("old / new: at most ")
    assert (
        f"old / new: right, new against old: better after {pairs} pairs "
        f"({pairs} discordant: {pairs} won, 0 lost)"
    ) in shown
    tw.compare(old, new, trials=10, store=None, progress=True)
    assert "control / candidate: 10/10 pairs, 20 trials, 0 s" in capsys.readouterr().err


def test_a_choice_is_shown_by_rounds_and_arms(capsys: pytest.CaptureFixture[str]) -> None:
    criterion = tw.Criterion("right", tw.equals("OK"), at_least=0.5)
    low = tw.Contract("agent", str.lower, [criterion], sampling=["ok"])
    arms = [low, low.with_service(str.upper), low.with_service(str.lower)]
    labels = ["low", "high", "lower"]
    settings: dict[str, Any] = {"labels": labels, "store": None, "progress": True, "seed": 1}
    found = tw.compare(*arms, question="best", **settings)
    shown = capsys.readouterr().err.splitlines()

    assert found.chosen == "high"
    assert shown[0] == "low / high / lower: at most 1,000 rounds"
    assert any("low: another arm is better after" in line for line in shown)
    tw.compare(*arms, question="describe", trials=10, **settings)
    assert "low / high / lower: 10/10 rounds, 30 trials, 0 s" in capsys.readouterr().err
