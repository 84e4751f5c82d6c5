"""Which trials a baseline counts, and what is said of them."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.errors import DesignRefused
from trialwise.model.trial import Analysis
from trialwise.stores.baselines import BaselineStore


def contract(service: Any) -> tw.Contract:
    criterion = tw.Criterion("ok", tw.equals("ok"), no_worse_than="baseline")
    return tw.Contract("x", service, [criterion])


def lose_every(nth: int) -> tw.Contract:
    """A service that cannot be reached every few calls, and otherwise always passes."""
    calls = count(1)

    def ask(_text: str) -> str:
        if next(calls) % nth == 0:
            raise ConnectionRefusedError("nobody there")
        return "ok"

    return contract(ask)


def settings(folder: Path, **more: Any) -> dict[str, Any]:
    usual = {"inputs": ["a", "b"], "store": None, "baselines": folder, "progress": False}
    return {**usual, "retries": 0, **more}


@pytest.mark.parametrize(
    ("analysis", "counted"),
    [("measured", (60, 60)), ("per-protocol", (60, 60)), ("intent-to-treat", (48, 60))],
)
def test_a_baseline_counts_the_trials_that_its_analysis_counts(
    tmp_path: Path, analysis: str, counted: tuple[int, int]
) -> None:
    """Every fifth call is not reached: no failure of the service, unless all trials count."""
    done = tw.measure(lose_every(5), trials=60, **settings(tmp_path, analysis=analysis))
    one = done.baseline.criteria["ok"]
    assert (one.passed, one.trials) == counted
    assert one.analysis == analysis
    assert one.excused == len(done.trials) - one.passed

    result = tw.run(contract(lambda _: "ok"), trials=60, **settings(tmp_path, analysis=analysis))
    assert str(result.decision) == "PASS"


def test_a_baseline_is_compared_with_the_trials_that_it_counts(tmp_path: Path) -> None:
    """Another analysis is refused with the two ways out, and both of them work."""
    tw.measure(lose_every(5), trials=60, **settings(tmp_path))
    fine = contract(lambda _: "ok")
    with pytest.raises(DesignRefused) as refused:
        tw.run(fine, trials=60, **settings(tmp_path, analysis="per-protocol"))

    assert "with `analysis: per-protocol`, or decide by `analysis: measured`" in str(refused.value)
    tw.run(fine, trials=60, **settings(tmp_path, analysis="measured"))
    tw.measure(lose_every(5), trials=60, **settings(tmp_path, analysis="per-protocol"))
    tw.run(fine, trials=60, **settings(tmp_path, analysis="per-protocol"))


@pytest.mark.parametrize("now", list(Analysis))
def test_a_baseline_whose_every_trial_was_measured_serves_every_analysis(
    tmp_path: Path, now: Analysis
) -> None:
    """All analyses count the same trials then."""
    tw.measure(contract(lambda _: "ok"), trials=60, **settings(tmp_path))
    result = tw.run(contract(lambda _: "ok"), trials=60, **settings(tmp_path, analysis=now))

    assert str(result.decision) == "PASS"


def test_a_baseline_without_an_analysis_is_written_and_read_as_before(tmp_path: Path) -> None:
    """Earlier versions counted every trial and did not say how many were measured."""
    done = tw.measure(contract(lambda _: "ok"), trials=60, **settings(tmp_path))
    kept = done.baseline.criteria["ok"]
    old = replace(
        done.baseline, identifier="old", criteria={"ok": replace(kept, analysis=None, excused=None)}
    )
    path = BaselineStore(tmp_path / "old").save(old)

    written = json.loads(path.read_text(encoding="utf-8"))["criteria"]["ok"]
    assert not {"analysis", "excused"} & set(written)
    ((_, read),) = BaselineStore(tmp_path / "old").all("x")
    assert read == old
    fine = contract(lambda _: "ok")
    tw.run(fine, trials=60, **settings(tmp_path / "old"))
    with pytest.raises(DesignRefused, match="Measure a new baseline"):
        tw.run(fine, trials=60, **settings(tmp_path / "old", analysis="per-protocol"))


def test_a_measurement_of_a_service_that_drifts_says_so(tmp_path: Path) -> None:
    """All pass in the first half and every second one after it, as `run` says of such trials."""

    def ask(_text: str, index: int) -> str:
        return "ok" if index < 50 or index % 2 else "bad"

    done = tw.measure(contract(ask), trials=100, **settings(tmp_path))
    steady = tw.measure(contract(lambda _: "ok"), trials=100, **settings(tmp_path / "steady"))
    criterion = tw.Criterion("ok", tw.equals("ok"), at_least=0.5)
    run = tw.run(
        tw.Contract("x", ask, [criterion]), trials=100, curtail=False, **settings(tmp_path)
    )
    diagnosed = run.verdict.findings[0].diagnostics
    assert diagnosed is not None
    shown = io.StringIO()
    done.show(stream=shown)

    assert done.warnings == tuple(f"ok: {one}" for one in diagnosed.warnings)
    assert "The rate was 1 in the first half of the run and 0.5 in the second" in shown.getvalue()
    assert steady.warnings == ()
