"""Ctrl-C is held back while something is set up or torn down, once."""

from __future__ import annotations

import signal
from types import FrameType

import pytest

from trialwise.plugin.other_plugins import held_back


def test_the_first_waits_for_the_end_of_the_block() -> None:
    """The block is finished before the interrupt is raised."""
    done = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012, SIM117
        with held_back():
            signal.raise_signal(signal.SIGINT)
            done.append("finished")

    assert ["finished"] == done
    assert signal.default_int_handler is signal.getsignal(signal.SIGINT)


def test_the_second_is_raised_at_once() -> None:
    """Whoever presses twice means it."""
    done = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012, SIM117
        with held_back():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            done.append("finished")

    assert [] == done


def test_it_is_not_lost_to_another_exception() -> None:
    """A block that fails after Ctrl-C is interrupted all the same."""
    with pytest.raises(KeyboardInterrupt), held_back():  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        raise ValueError("the block's own")


def test_a_handler_that_the_block_puts_in_place_stays() -> None:
    """A fixture may start something that wants Ctrl-C for itself."""

    def own(_number: int, _frame: FrameType | None) -> None:
        return None

    before = signal.getsignal(signal.SIGINT)
    try:
        with held_back():
            signal.signal(signal.SIGINT, own)

        assert own is signal.getsignal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_where_interrupts_are_ignored_they_stay_so() -> None:
    """A session in the background has no Ctrl-C to hold back."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with held_back():
            assert signal.SIG_IGN is signal.getsignal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
