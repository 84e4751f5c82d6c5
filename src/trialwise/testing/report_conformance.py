"""What every format of a report has to satisfy, built in or not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from trialwise.engine.ports import ServiceError
from trialwise.model.run import RunRecord
from trialwise.model.trial import ErrorClass
from trialwise.reports.formats import ReportFormat, ReportSource

__all__ = ["assert_report_format_conforms", "example_records"]


_DOWN = ServiceError("the service is down", ErrorClass.INFRASTRUCTURE)


@cache
def example_records() -> tuple[RunRecord, ...]:
    """Return the records of three small runs: a PASS, a FAIL and one that is INCONCLUSIVE."""
    return (
        _example_run("sums", ["555"], at_least=0.5, trials=40),
        _example_run("capitals <b>&", ["Sydney", "555"], at_least=0.9, trials=40),
        # Its service is never reached, so that nothing is shown.
        _example_run("poems", [_DOWN], at_least=0.5, trials=40),
    )


def assert_report_format_conforms(
    declared: ReportFormat, records: Sequence[RunRecord] | None = None
) -> None:
    """Assert that a format of a report behaves as those that are built in.

    - Its name and key are words, and its endings begin with a dot or are whole names.
    - It renders one run and several, the same text each time, and names every contract.
    - Its text can be written as UTF-8, and is JSON where it says so.

    Args:
        declared: What the entry point names.
        records: The runs to show; `example_records()` where not given.

    Raises:
        AssertionError: What does not hold.
    """
    shown = tuple(example_records() if records is None else records)
    assert isinstance(declared, ReportFormat), f"{declared!r} must be a ReportFormat"
    assert declared.name, "a format needs a name"
    assert declared.key, "a format needs a key for suites"
    assert declared.summary, "a format says in `summary` what it holds and for whom"
    assert all(declared.endings), "an ending is not empty"
    for some in (shown[:1], shown):
        text = declared.render(ReportSource(records=some))
        assert isinstance(text, str), f"{declared.name} gives {type(text).__name__}, not text"
        text.encode()
        assert text == declared.render(ReportSource(records=some)), "two reports of one run differ"
        if declared.is_json:
            json.loads(text)
        assert text.strip(), f"{declared.name} says nothing of {len(some)} runs"


def _example_run(name: str, replies: list[Any], *, at_least: float, trials: int) -> RunRecord:
    from trialwise.checks.texts import contains
    from trialwise.model.contract import Contract
    from trialwise.model.criterion import Criterion
    from trialwise.runtime.running import run
    from trialwise.testing.scripted_service import ScriptedService

    criterion = Criterion("answers", contains("555"), at_least=at_least)
    contract = Contract(name, ScriptedService(replies), [criterion])
    result = run(
        contract,
        inputs=["What is 15 * 37?", "And 37 * 15?"],
        trials=trials,
        seed=7,
        intent="smoke",
        store=None,
        progress=False,
    )
    return result.record
