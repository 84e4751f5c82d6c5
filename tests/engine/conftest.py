"""Shared set-up: asyncio as the backend, plans small enough to read, and a clock that obeys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from trialwise.model.claim import Intent, SamplingMode
from trialwise.model.contract import Contract
from trialwise.model.evidence import Threshold
from trialwise.model.options import RunOptions
from trialwise.model.plan import CriterionPlan, ExperimentPlan, Plan
from trialwise.model.trial import Analysis
from trialwise.stores.journal import Journal
from trialwise.testing import VirtualClock


@pytest.fixture
def anyio_backend() -> str:
    """What a run uses."""
    return "asyncio"


@pytest.fixture
def virtual_clock() -> VirtualClock:
    """A clock that starts at 0."""
    return VirtualClock()


def _criterion(name: str, experiment: str, given: Mapping[str, Any]) -> CriterionPlan:
    design = given.get("design")
    return CriterionPlan(
        criterion=name,
        experiment=experiment,
        procedure="COMPLIANCE" if design is None else "SEQUENTIAL",
        rule="wilson",
        decision_rule=None,
        alpha=0.05,
        trials=given["trials"],
        cutoff=given.get("cutoff"),
        design=design,
        threshold=Threshold(),
    ).change(
        stops_early=design is not None,
        each_input=given.get("each_input", False),
        rides_along=given.get("rides_along", False),
        curtailed=given.get("curtailed", True),
    )


def make_plan(
    contract: Contract,
    *,
    criteria: Mapping[str, Mapping[str, Any]] | None = None,
    trials: int | None = None,
    seed: int = 7,
    analysis: Analysis = Analysis.INTENT_TO_TREAT,
    mode: SamplingMode = SamplingMode.WITH_REPLACEMENT,
    purpose: str = "test",
    latency: tuple[Any, ...] = (),
    design: Any = None,
    cutoff: int | None = None,
    **options: Any,
) -> Plan:
    """A plan for a contract; without `criteria` each one gets `trials` and `cutoff` or `design`."""
    usual = {"trials": trials or (design.cap if design else 10), "cutoff": cutoff, "design": design}
    found = {one.name: {**usual, **(criteria or {}).get(one.name, {})} for one in contract.criteria}
    experiments = []
    for name, sampling in contract.samplings.items():
        mine = [found[one.name] for one in contract.criteria if contract.experiment_of(one) == name]
        inputs = len(sampling.inputs)
        most = max(one["trials"] * (inputs if one.get("each_input") else 1) for one in mine)
        experiments.append(
            ExperimentPlan(
                name=name,
                identifier=sampling.identifier,
                fingerprint="f",
                input_ids=tuple(one.id for one in sampling.inputs),
                repetitions=tuple(one.repetitions for one in sampling.inputs),
                trials=most,
                draw="balanced",
                sampling_mode=mode,
            )
        )
    return Plan(
        contract=contract.name,
        seed=seed,
        intent=Intent.VERIFICATION,
        rule="wilson",
        analysis=analysis,
        claim=contract.claim,
        options=RunOptions(**options),
        experiments=tuple(experiments),
        criteria=tuple(
            _criterion(one.name, contract.experiment_of(one), found[one.name])
            for one in contract.criteria
        ),
        latency=latency,
        purpose=purpose,
    )


@pytest.fixture(scope="session")
def plan_of() -> Callable[..., Plan]:
    """Make a plan for a contract."""
    return make_plan


class Notes:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def on_event(self, event: Any) -> None:
        self.events.append(event)

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def notes() -> Notes:
    """A listener to look at afterwards."""
    return Notes()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """A real journal."""
    with Journal(tmp_path / "journal.jsonl") as opened:
        yield opened
