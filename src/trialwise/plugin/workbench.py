"""The `trialwise` fixture: contracts built and run inside a test, as part of its session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

import trialwise
from trialwise.model.verdict import Decision
from trialwise.plugin.marked_test import excuses, note_comparison, note_result, raise_verdict
from trialwise.plugin.reasons import Reasons
from trialwise.plugin.reporting import Judged, comparison_repr

if TYPE_CHECKING:
    from trialwise.model.contract import Contract
    from trialwise.plugin.session_budget import SessionBudget
    from trialwise.plugin.settings import Settings
    from trialwise.runtime.answers import Comparison
    from trialwise.runtime.result import Result


#: Settings of a session that are a run's own too.
_OF_A_RUN = ("trials", "max_trials", "intent", "rule", "seed")


class Workbench:
    """trialwise inside a test: every public name of it, and runs that belong to the session.

    Runs are kept where the session keeps its own, draw on its budget and stand in its summary.

    Args:
        item: The test.
        settings: The session's.
        budget: The session's budget.
    """

    def __init__(self, item: pytest.Item, settings: Settings, budget: SessionBudget) -> None:
        self._item = item
        self._settings = settings
        self._budget = budget

    def __getattr__(self, name: str) -> Any:
        return getattr(trialwise, name)

    def run(self, contract: Contract, **arguments: Any) -> Result:
        """Run and decide a contract; what the verdict means is left to the test.

        Args:
            contract: What is promised, of which service.
            arguments: As of `trialwise.run`.
        """
        return self._run(contract, arguments)[0]

    def verify(self, contract: Contract, **arguments: Any) -> Result:
        """Run a contract and fail the test unless it passes.

        An INCONCLUSIVE one is what `--trialwise-inconclusive` says.
        """
        result, where = self._run(contract, arguments)
        if result.decision is not Decision.PASS:
            raise_verdict(self._item, result.record, Reasons(), where, self._settings)
        return result

    def compare(self, control: Contract, *candidates: Contract, **arguments: Any) -> Comparison:
        """Compare services in turn; what the verdict means is left to the test.

        Args:
            control: What the candidates are compared with.
            candidates: One or more.
            arguments: As of `trialwise.compare`.
        """
        return self._compare((control, *candidates), arguments)[0]

    def verify_comparison(
        self, control: Contract, *candidates: Contract, **arguments: Any
    ) -> Comparison:
        """Compare services and fail the test unless the candidates pass.

        An INCONCLUSIVE comparison is what `--trialwise-inconclusive` says.
        """
        found, where = self._compare((control, *candidates), arguments)
        text = f"{found.decision.value}: {found.verdict.statement}"
        if found.passed or (
            found.decision is Decision.INCONCLUSIVE and excuses(text, self._settings)
        ):
            return found
        raise Judged(text, comparison_repr(found, text, self._item, where))

    def _compare(
        self, contracts: Sequence[Contract], arguments: dict[str, Any]
    ) -> tuple[Comparison, str]:
        given = self._arguments(arguments)
        del given["baselines"]
        found = trialwise.compare(*contracts, **given)
        for one in found.arms:
            self._budget.pay_all(one.record.verdict.spending)
        assert found.path is not None
        return found, note_comparison(self._item, found, found.path)

    def _run(self, contract: Contract, arguments: dict[str, Any]) -> tuple[Result, str]:
        result = trialwise.run(contract, **self._arguments(arguments))
        self._budget.pay_all(result.verdict.spending)
        assert result.path is not None
        where = note_result(self._item, result.record, result.path, prefix=contract.name)
        return result, where

    def _arguments(self, given: dict[str, Any]) -> dict[str, Any]:
        left = self._budget.remaining()
        if left is None:
            pytest.fail("the session's budget is used up: nothing was run", pytrace=False)
        settings = self._settings
        folders = {"store": settings.store, "baselines": settings.baselines}
        merged = settings.merge(given, _OF_A_RUN)
        return {**folders, "progress": False, "budget": left, **merged}
