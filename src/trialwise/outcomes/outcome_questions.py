"""The question about the outcomes of a file: which criteria, which rate, which assumptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trialwise.errors import InvalidArgument
from trialwise.model.baseline import Baseline
from trialwise.model.claim import Claim
from trialwise.model.contract import Latency
from trialwise.model.criterion import Criterion
from trialwise.model.options import RunOptions
from trialwise.model.reply import Reply
from trialwise.model.trial import CheckResult, FailReason
from trialwise.outcomes.outcome_rows import Outcomes
from trialwise.outcomes.outcome_trials import Experiment, Order, gather, in_order


@dataclass(frozen=True, slots=True)
class Supplied:
    """Stands for the check that another tool made; there is no reply to check here."""

    name: str = "decided elsewhere"

    def check(self, reply: Reply) -> CheckResult:  # noqa: ARG002 - nothing is called
        """Fail every reply, because the check was made elsewhere."""
        return CheckResult.fail("this is decided elsewhere", reason=FailReason.NO_VALUE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question about outcomes."""

    outcomes: Outcomes
    experiments: Sequence[Experiment]
    """The trials in order, with the criteria of the question."""
    criteria: Sequence[Criterion]
    contract: str
    options: RunOptions
    order: Order
    trials: int | None = None
    """The planned trials of every criterion that does not say, if the user declares them."""
    sequential: bool = False
    claim: Claim = field(default_factory=Claim)
    latency: Latency | None = None
    factors: Mapping[str, str] = field(default_factory=dict)
    covariates: Mapping[str, str] = field(default_factory=dict)

    def criterion(self, name: str) -> Criterion:
        """Return a criterion of the question by its name."""
        return next(one for one in self.criteria if one.name == name)

    def experiment_of(self, criterion: str) -> Experiment:
        """Return the experiment whose trials decide a criterion."""
        return next(one for one in self.experiments if criterion in one.criteria)


def question_all(
    outcomes: Outcomes,
    *,
    at_least: float | Mapping[str, float] | None = None,
    no_worse_than: str | Baseline | None = None,
    never_fails: bool = False,
    mean_at_least: float | None = None,
    **common: Any,
) -> list[Criterion]:
    """Ask the same of every criterion, or different rates of some of them.

    Args:
        outcomes: Whose criteria.
        at_least: The required rate, or rates by name.
        no_worse_than: A baseline.
        never_fails: Whether any failure was observed.
        mean_at_least: The required mean score.
        common: Further arguments of every `Criterion`.
    """
    reference = no_worse_than.identifier if isinstance(no_worse_than, Baseline) else no_worse_than
    rates: Mapping[str, float | None]
    if isinstance(at_least, Mapping):
        if not at_least:
            raise InvalidArgument("at_least", {}, "give the rate of at least one criterion")
        rates = at_least
    else:
        rates = dict.fromkeys(outcomes.criteria, at_least)
    graded = outcomes.graded
    for name in rates if mean_at_least is not None else ():
        if name not in graded:
            allowed = f"have scores from 0 to 1, read with pass_at; {name!r} has none"
            raise InvalidArgument("mean_at_least", mean_at_least, allowed)
    return [
        Criterion(
            name,
            Supplied(),
            at_least=rate,
            no_worse_than=reference,
            never_fails=never_fails,
            mean_at_least=mean_at_least,
            pass_at=outcomes.pass_at if name in graded else None,
            **common,
        )
        for name, rate in rates.items()
    ]


def ask(
    outcomes: Outcomes, criteria: Sequence[Criterion], *, seed: int = 0, **arguments: Any
) -> Asked:
    """Put a question to the trials it is about, in their order.

    Args:
        outcomes: All of them: what one criterion says of a trial shows that another is missing.
        criteria: Those that are asked about, by name.
        seed: The seed of a random order, where none is known.
        arguments: The other fields of `Asked`.
    """
    asked = Asked(outcomes=outcomes, experiments=(), criteria=criteria, **arguments)
    _check(asked)
    mine = _restrict_criteria(gather(outcomes), [one.name for one in criteria])
    for one in mine:
        kinds = {asked.criterion(name).each_input for name in one.criteria}
        if len(kinds) > 1:
            allowed = "be the same for criteria of the same trials: score the two kinds apart"
            raise InvalidArgument("each_input", sorted(one.criteria), allowed)
    return replace(asked, experiments=[in_order(one, asked.order, seed) for one in mine])


def _check(asked: Asked) -> None:
    known = asked.outcomes.criteria
    for one in asked.criteria:
        if one.name not in known:
            listed = ", ".join(known[:12])
            raise InvalidArgument("criterion", one.name, f"be one of the file's: {listed}")
        if asked.sequential and (one.at_least is None and not one.never_fails):
            allowed = "be fixed against a baseline: only a required rate is decided early"
            raise InvalidArgument("design", "sequential", allowed)
    for trials in (*(one.trials for one in asked.criteria), asked.trials):
        if asked.sequential and trials is not None:
            allowed = "be left out of a sequential decision, which takes max_trials"
            raise InvalidArgument("trials", trials, allowed)
    if not asked.sequential and asked.options.max_trials is not None:
        allowed = "go with a sequential design"
        raise InvalidArgument("max_trials", asked.options.max_trials, allowed)


def _restrict_criteria(experiments: Sequence[Experiment], names: Sequence[str]) -> list[Experiment]:
    """Return the experiments with the criteria of the question, in its order."""
    found = []
    for one in experiments:
        places = [one.criteria.index(name) for name in names if name in one.criteria]
        if places:
            trials = [replace(t, rows=tuple(t.rows[place] for place in places)) for t in one.trials]
            criteria = tuple(one.criteria[place] for place in places)
            found.append(replace(one, criteria=criteria, trials=tuple(trials)))
    return found
