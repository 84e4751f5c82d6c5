"""Another distribution adds a procedure: its module, its metadata and its test are all it takes."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

import trialwise as tw
from trialwise.errors import InvalidArgument
from trialwise.model.codec import to_plain
from trialwise.model.evidence import Evidence
from trialwise.model.verdict import ProcedureDesign
from trialwise.procedures import registry
from trialwise.procedures.chances import forecast
from trialwise.procedures.registry import find_procedure, procedure_of
from trialwise.runtime.verifying import verify
from trialwise.stores.runs import RunStore

MODULE = '''
"""Betting: a bettor who wins on failures; decided once the odds against the rate are 20 to 1."""

from dataclasses import dataclass

from trialwise.documents.blocks import Facts, Section
from trialwise.model.evidence import Evidence
from trialwise.model.verdict import Decision, ProcedureDesign
from trialwise.procedures.base import Conclusion, Procedure, Refused
from trialwise.procedures.characteristic import Chance, Characteristic, RuleError


@dataclass(frozen=True, slots=True, kw_only=True)
class Stakes(ProcedureDesign):
    odds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Winnings(Evidence):
    wealth: float


class Betting(Procedure):
    name = "BETTING"
    question = "Would anybody still bet on the required rate?"
    error_family = "false-rejection"

    def plan(self, criterion, situation):
        if criterion.at_least is None:
            return Refused("a bet needs a required rate; give at_least")
        return situation.start_plan(
            criterion,
            procedure=self.name,
            rule=None,
            decision_rule="betting/kelly",
            alpha=criterion.wrong_fail,
            trials=situation.fixed_trials(criterion) or 30,
            design=Stakes(odds=1 / criterion.wrong_fail),
            curtailed=False,
        )

    def conclude(self, plan, counts):
        rate, tally = plan.threshold.required_rate, counts.tally
        wealth = (0.5 / rate) ** tally.passed * (0.5 / (1 - rate)) ** tally.failed
        lost = wealth >= plan.design.odds
        return Conclusion(
            decision=Decision.FAIL if lost else Decision.PASS,
            tally=tally,
            evidence=Winnings(wealth=wealth),
            statement=f"A dollar against the rate has become {wealth:.3g}.",
        )

    def characterize(self, plan, intent):
        return Characteristic(
            at=lambda rate: Chance(rate=rate, passes=float(rate == 1), fails=float(rate < 1)),
            states=((1.0, "perfect"),),
            errors=(RuleError(wrong=Decision.FAIL, event="FAIL as required", allowed=plan.alpha),),
        )

    def describe_rule(self, plan):
        return f"FAIL at odds of {plan.design.odds:g} to 1"

    def explain(self, finding):
        pairs = (("Wealth", f"{finding.evidence.wealth:.3g}"),)
        return (Section(heading="BETS", blocks=(Facts(pairs=pairs),)),)
'''

METADATA = """
Metadata-Version: 2.1
Name: betting
Version: 1.0
"""

ENTRY_POINTS = """
[trialwise.procedures]
BETTING = betting_procedure:Betting
"""


@pytest.fixture
def betting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder on the path with a module and the metadata of its distribution."""
    site = tmp_path / "site"
    info = site / "betting-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "betting_procedure.py").write_text(MODULE)
    (info / "METADATA").write_text(METADATA.lstrip())
    (info / "entry_points.txt").write_text(ENTRY_POINTS.lstrip())
    monkeypatch.syspath_prepend(str(site))
    importlib.invalidate_caches()
    find_procedure.cache_clear()
    yield
    find_procedure.cache_clear()
    sys.modules.pop("betting_procedure", None)


def contract(service: object) -> tw.Contract:
    criterion = tw.Criterion("right", tw.contains("yes"), at_least=0.9, procedure="BETTING")
    return tw.Contract("bets", service, [criterion])


@pytest.mark.usefixtures("betting")
def test_a_procedure_of_another_distribution_plans_runs_decides_explains_and_stores(
    tmp_path: Path,
) -> None:
    """Nothing of trialwise is edited for it."""
    folder = tmp_path / "store"

    result = tw.run(contract(lambda _: "no"), inputs=["a", "b"], seed=1, store=folder)

    (finding,) = result.verdict.findings
    assert result.verdict.decision is tw.Decision.FAIL
    assert (finding.procedure, finding.decision_rule) == ("BETTING", "betting/kelly")
    assert finding.tally.trials == 30
    assert result.verdict.envelopes.false_rejection_envelope == pytest.approx(0.05)
    (section,) = procedure_of(finding).explain(finding)
    assert section.heading == "BETS"
    (expected,) = forecast(result.record.plan)
    assert expected.rule == "FAIL at odds of 20 to 1"
    assert [one.meaning for one in expected.chances] == ["perfect"]

    kept = RunStore(folder).load(result.record.run_id)
    assert kept.verdict == result.verdict
    assert kept.verdict.findings[0].evidence.wealth == pytest.approx(5.0**30)  # type: ignore[attr-defined]
    assert verify(kept).differences == ()


@pytest.mark.usefixtures("betting")
def test_its_records_are_read_where_nothing_has_loaded_it_yet(tmp_path: Path) -> None:
    """A later process finds the classes of its design and evidence through the entry point."""
    folder = tmp_path / "store"
    result = tw.run(contract(lambda _: "no"), inputs=["a"], seed=1, store=folder)
    del Evidence.kinds["Winnings"], ProcedureDesign.kinds["Stakes"]
    sys.modules.pop("betting_procedure")
    find_procedure.cache_clear()

    kept = RunStore(folder).load(result.record.run_id)

    assert to_plain(kept.verdict) == to_plain(result.verdict)


NEXT_PROCESS = """
import sys
sys.path.insert(0, {site!r})
from trialwise.procedures import registry
registry._BUILT_IN["BETTING"] = "betting_procedure"
from trialwise.cli.main import main
main()
"""


def test_a_module_and_a_line_of_the_registry_are_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The next process verifies the record, with the classes of evidence and design where the
    procedure has them.
    """
    site, folder = tmp_path / "site", tmp_path / "store"
    site.mkdir()
    module = MODULE + "\n\nPROCEDURE = Betting()\n"
    (site / "betting_procedure.py").write_text(module, encoding="utf-8")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setitem(registry._BUILT_IN, "BETTING", "betting_procedure")
    find_procedure.cache_clear()

    result = tw.run(contract(lambda _: "yes"), inputs=["a"], seed=1, store=folder)
    shown = subprocess.run(
        [
            *(sys.executable, "-c", NEXT_PROCESS.format(site=str(site))),
            *("show", "--verify", "--store", str(folder), result.record.run_id),
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    find_procedure.cache_clear()
    sys.modules.pop("betting_procedure")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "VERIFIED" in shown.stdout


@pytest.mark.usefixtures("betting")
def test_what_it_refuses_is_said_with_the_criterion() -> None:
    """A refusal of its own reads like any other."""
    criterion = tw.Criterion("right", tw.contains("yes"), never_fails=True, procedure="BETTING")

    with pytest.raises(tw.DesignRefused, match="right: a bet needs a required rate"):
        tw.run(tw.Contract("bets", lambda _: "yes", [criterion]), inputs=["a"], store=None)


def test_without_the_distribution_the_name_is_refused() -> None:
    """The message says which procedures there are."""
    find_procedure.cache_clear()

    with pytest.raises(InvalidArgument, match="procedure must be one of ANYTIME"):
        find_procedure("BETTING")
    with pytest.raises(tw.DesignRefused, match="procedure must be one of ANYTIME"):
        tw.run(contract(lambda _: "yes"), inputs=["a"], store=None)


def test_the_module_is_small() -> None:
    """What a procedure takes fits on a page."""
    assert len(dedent(MODULE).splitlines()) < 90
