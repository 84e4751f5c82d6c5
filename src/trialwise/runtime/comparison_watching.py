"""Shows a comparison while its arms run: pairs, discordant pairs and which tests are decided."""

from __future__ import annotations

from trialwise.engine.spending_meter import Meter
from trialwise.model.trial import Trial
from trialwise.procedures.comparing.pair_following import PairFollowing
from trialwise.renderers.comparison_progress import (
    ComparisonProgress,
    ComparisonStanding,
    TestStanding,
)
from trialwise.runtime.arm_plans import PlannedArms


class ComparisonWatch:
    """Tells a display how the tests stand, after a trial that it wants to hear of.

    Args:
        planned: The arms.
        following: Follows their tests.
        display: Shows them.
        feeds: Whether trials are handed on to `following`, which nobody else feeds.
    """

    def __init__(
        self,
        planned: PlannedArms,
        following: PairFollowing,
        display: ComparisonProgress,
        *,
        feeds: bool,
    ) -> None:
        self._planned = planned
        self._following = following
        self._display = display
        self._feeds = feeds
        self._open = -1

    def __call__(self, arm: int, trial: Trial, meter: Meter) -> None:
        """Take note of a trial of an arm."""
        if self._feeds:
            self._following.add(arm, trial)
        still_open = self._following.count_open()
        if still_open != self._open or self._display.wants_more():
            self._open = still_open
            spent = meter.spending()
            self.show(spent.trials, spent.paid_usd)

    def show(self, trials: int = 0, usd: float | None = None) -> None:
        """Show how the comparison stands.

        Args:
            trials: Of all arms so far.
            usd: What they cost, if anybody tells.
        """
        planned = self._planned
        labels, question = planned.labels, planned.pair_question
        tests = [
            TestStanding(
                name=f"{test.criterion}, {labels[test.arm]} against {labels[test.against]}",
                question=question.of_criterion(test.criterion)[0],
                counts=counts,
                outcome=outcome,
            )
            for test, counts, outcome in self._following.list_standings()
        ]
        self._display.show(
            ComparisonStanding(
                title=" / ".join(labels),
                most_pairs=max(one.trials for one in planned.plans[0].experiments),
                tests=tests,
                trials=trials,
                usd=usd,
            )
        )
