"""Contracts drawn at random, the chances that are stated of them, and how often they come true.

A contract is run many times by the real engine, against a service whose rates are known. Every
number that `check` and a report state in JSON is compared with the frequency by an exact binomial
test at a level so small that no comparison is wrong by chance; seeds are fixed besides.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from scipy.stats import binom

import trialwise as tw
from trialwise.errors import TrialwiseError
from trialwise.model.codec import to_plain
from trialwise.pages.json_report import describe_report
from trialwise.pages.suite_totals import bound_planned_errors
from trialwise.procedures.chances import forecast, forecast_together
from trialwise.runtime.preparing import PreparedRun
from trialwise.runtime.running import run_prepared
from trialwise.runtime.workspace import Workspace

#: Within one comparison of a frequency with a stated number.
LEVEL = 1e-6
_RULES = ("exact", "exact", "wilson", "fisher")
_CORRECTIONS = ("none", "none", "none", "bonferroni", "holm", "bh", "by", "e-bh")
#: Trials of a baseline, and the rate of the service when it is measured.
_BASELINE, _MEASURED_AT = 200, 0.9


@dataclass(frozen=True)
class RandomContract:
    """What is promised, how it is run, and by which number it was drawn."""

    number: int
    criteria: tuple[Mapping[str, Any], ...]
    options: Mapping[str, Any]
    inputs: int = 1

    def __str__(self) -> str:
        return f"contract {self.number}: {list(self.criteria)}, {dict(self.options)}"

    @property
    def has_baseline(self) -> bool:
        """Whether a criterion is compared with a baseline."""
        return any("no_worse_than" in one for one in self.criteria)

    def build(self, rates: Sequence[float]) -> tw.Contract:
        """Return the contract with a service that meets each criterion at a rate of its own."""
        criteria = [
            tw.Criterion(f"c{place}", tw.matches(f"^.{{{place}}}1"), **given)
            for place, given in enumerate(self.criteria)
        ]

        def answer(question: str, seed: int) -> str:  # noqa: ARG001
            random = Random(seed)
            return "".join("1" if random.random() < rate else "0" for rate in rates)

        questions = [f"q{place}" for place in range(self.inputs)]
        return tw.Contract("drawn", answer, criteria, sampling=questions)


def draw_contract(number: int) -> RandomContract:
    """Draw a contract; the same number gives the same one."""
    random = Random(f"contract/{number}")
    criteria = tuple(_draw_criterion(random) for _ in range(random.choice((1, 1, 2, 2, 3, 4))))
    options: dict[str, Any] = {"rule": random.choice(_RULES)}
    correction = random.choice(_CORRECTIONS)
    if correction != "none":
        options |= {"correction": correction, "family_size": random.choice((2, 4, 10))}
    if random.random() < 0.15:
        options["intent"] = "smoke"
    if random.random() < 0.15:
        options["curtail"] = False
    inputs = random.choice((1, 1, 2)) if any("each_input" in one for one in criteria) else 1
    return RandomContract(number, criteria, options, inputs)


def _draw_criterion(random: Random) -> dict[str, Any]:
    kind = random.choice(("fixed", "fixed", "sequential", "sequential", "baseline", "never"))
    if kind == "never":
        return {"never_fails": True}
    if kind == "baseline":
        return {"no_worse_than": "baseline", "trials": random.choice((60, 100))}
    given: dict[str, Any] = {"at_least": random.choice((0.7, 0.8, 0.9))}
    if kind == "fixed":
        given["trials"] = random.choice((40, 60, 100))
        given["undecided"] = random.choice(("fail", "inconclusive"))
    else:
        given["max_trials"] = random.choice((60, 100))
    if random.random() < 0.3:
        given["margin"] = 0.1
    if random.random() < 0.2:
        given["each_input"] = True
    return given


# --- What is stated -----------------------------------------------------------------------------


class Statement(NamedTuple):
    """A number that is stated of a contract, and how to find out whether it is true."""

    where: str
    """Which JSON states it."""
    what: str
    rates: tuple[float, ...]
    """The true rates, one for each criterion."""
    happens: Callable[[tw.Result], bool]
    """Whether a run is one of those that the number counts."""
    chance: float
    is_bound: bool = False
    """Whether the frequency may be smaller."""
    draws_baselines: bool = False
    """Whether the number is over baselines, too, and not about the one that there is."""

    def __str__(self) -> str:
        sign = "≤" if self.is_bound else "="
        return f"{self.where}: {self.what} {sign} {self.chance:.4f} at {self.rates}"


class Stated(NamedTuple):
    """The numbers of a contract, as JSON has them."""

    check: dict[str, Any]
    envelopes: list[dict[str, Any]]


def read_stated(drawn: RandomContract, baselines: Path) -> Stated:
    """Read what `check` and the report of a run state of a contract.

    Raises:
        TrialwiseError: The contract is refused.
    """
    contract = drawn.build([1.0] * len(drawn.criteria))
    given: Any = {**drawn.options, "baselines": baselines}
    plan = tw.check(contract, **given)
    result = tw.run(contract, store=None, progress=False, seed=1, **given)
    check = {
        "criteria": [to_plain(one) for one in forecast(plan)],
        "together": [to_plain(one) for one in forecast_together([plan])],
        "envelopes": [to_plain(one) for one in bound_planned_errors([plan])],
    }
    return Stated(check, describe_report([result.record])["envelopes"])


def list_statements(drawn: RandomContract, stated: Stated) -> Iterator[Statement]:
    """List every number that is stated of a contract and can be compared with a frequency."""
    yield from _list_chances(drawn, stated)
    yield from _list_wrong_fails(drawn, stated)
    yield from _list_wrong_passes(drawn, stated)


def _list_chances(drawn: RandomContract, stated: Stated) -> Iterator[Statement]:
    """The chances of each criterion by itself, at the rates that `check` names."""
    for place, one in enumerate(stated.check["criteria"]):
        if one["advisory"]:
            continue
        for chance in one["chances"]:
            rates = tuple(
                chance["rate"] if place == other else 1.0 for other in range(len(drawn.criteria))
            )
            for decision, name in (("PASS", "passes"), ("FAIL", "fails")):
                yield Statement(
                    where="check",
                    what=f"{one['criterion']} {decision}, {chance['meaning']}",
                    rates=rates,
                    happens=partial(_decides, place, decision),
                    chance=chance[name],
                    draws_baselines=chance["meaning"] == "nothing changed",
                )


def _decides(place: int, decision: str, result: tw.Result) -> bool:
    """Whether a criterion has a decision; of one that decides each input, the first input has."""
    finding = result.verdict.findings[place]
    one = finding.by_input[0] if finding.by_input else finding
    return str(one.decision) == decision


def _is(decision: str, result: tw.Result) -> bool:
    return str(result.decision) == decision


def _list_wrong_fails(drawn: RandomContract, stated: Stated) -> Iterator[Statement]:
    """A FAIL although every rate is as required, or better than that."""
    envelope = _find_envelope(stated, "wrong-fail")
    if envelope is None:
        return
    left_out = _list_left_out(envelope)
    required = [
        1.0 if f"c{place}" in left_out else _required_rate(one)
        for place, one in enumerate(drawn.criteria)
    ]
    for words, rates in (
        ("as required", required),
        ("with half the allowed failures", [(1 + one) / 2 for one in required]),
    ):
        yield Statement(
            where="envelope",
            what=f"FAIL although every rate is {words}",
            rates=tuple(rates),
            happens=partial(_is, "FAIL"),
            chance=envelope["raw"],
            is_bound=True,
            draws_baselines=drawn.has_baseline,
        )


def _list_wrong_passes(drawn: RandomContract, stated: Stated) -> Iterator[Statement]:
    """A PASS although one rate is too low, whichever it is; the others are perfect."""
    envelope = _find_envelope(stated, "wrong-pass")
    if envelope is None:
        return
    left_out = _list_left_out(envelope)
    for place, one in enumerate(drawn.criteria):
        if "never_fails" in one or f"c{place}" in left_out:
            continue
        low = _required_rate(one) - one.get("margin", 0.1 if "no_worse_than" in one else 0.0)
        rates = tuple(low if place == other else 1.0 for other in range(len(drawn.criteria)))
        yield Statement(
            where="envelope",
            what=f"PASS although c{place} is too low",
            rates=rates,
            happens=partial(_is, "PASS"),
            chance=envelope["raw"],
            is_bound=True,
        )


def _find_envelope(stated: Stated, error: str) -> dict[str, Any] | None:
    """Find the limit of one error; None where nothing is stated, or a limit of 1 or more."""
    found = (one for one in stated.envelopes if one["error"] == error)
    return next((one for one in found if one["raw"] is not None), None)


def _list_left_out(envelope: Mapping[str, Any]) -> set[str]:
    """List the criteria that an envelope names as not counted."""
    return {one["name"] for one in envelope["not_counted"]}


def _required_rate(criterion: Mapping[str, Any]) -> float:
    if "never_fails" in criterion:
        return 1.0
    return float(criterion.get("at_least", _MEASURED_AT))


def list_contradictions(stated: Stated) -> Iterator[str]:
    """List where `check` and the report contradict each other, or themselves."""
    if stated.check["envelopes"] != stated.envelopes:
        yield f"`check` states {stated.check['envelopes']}, the report {stated.envelopes}"
    envelope = _find_envelope(stated, "wrong-fail")
    for one in stated.check["together"]:
        if envelope is None or "exactly as required" not in one["condition"]:
            continue
        # A sum of errors is never below the chance that one of several independent ones happens.
        if not _list_left_out(envelope) and envelope["raw"] < 1 - one["none_fails"] - 1e-9:
            yield (
                f"the report says FAIL in {envelope['raw']:.4f}, `check` in "
                f"{1 - one['none_fails']:.4f} if every rate is as required"
            )


# --- How often it happens -----------------------------------------------------------------------


def compare(drawn: RandomContract, *, runs: int) -> list[str]:
    """Return the numbers of a contract that are not true; nothing where it is refused.

    Args:
        drawn: The contract.
        runs: How often it is run for each number; fewer where the number is soon seen to be wrong.
    """
    with tempfile.TemporaryDirectory() as folder:
        baselines = Path(folder)
        if drawn.has_baseline:
            _measure(drawn, baselines, seed=drawn.number)
        try:
            stated = read_stated(drawn, baselines)
        except TrialwiseError:
            return []
        wrong = list(list_contradictions(stated))
        by_state: dict[tuple[tuple[float, ...], bool], list[Statement]] = {}
        for one in list_statements(drawn, stated):
            by_state.setdefault((one.rates, one.draws_baselines), []).append(one)
        for (rates, draws), several in by_state.items():
            wrong += _compare_state(drawn, rates, several, baselines, draws=draws, runs=runs)
    return wrong


def _measure(drawn: RandomContract, baselines: Path, *, seed: int) -> None:
    tw.measure(
        drawn.build([_MEASURED_AT] * len(drawn.criteria)),
        trials=_BASELINE,
        seed=seed,
        store=None,
        baselines=baselines,
        progress=False,
    )


def _prepare(
    drawn: RandomContract, rates: Sequence[float], baselines: Path, *, keep_going: bool
) -> Callable[[int], tw.Result]:
    """Plan a contract once, and return what runs it with a seed and keeps nothing."""
    contract = drawn.build(rates)
    given: Any = {**drawn.options, "baselines": baselines, "keep_going": keep_going}
    plan = tw.check(contract, **given)
    space = Workspace.open(None, baselines, progress=False)

    def run_again(seed: int) -> tw.Result:
        return run_prepared(PreparedRun(contract, replace(plan, seed=seed)), space)

    return run_again


#: After this many runs a comparison looks for the first time.
_FIRST_LOOK = 20


def _compare_state(
    drawn: RandomContract,
    rates: tuple[float, ...],
    statements: Sequence[Statement],
    baselines: Path,
    *,
    draws: bool,
    runs: int,
) -> list[str]:
    """Run a contract at one state until a number is seen to be wrong, or this many times."""
    # A criterion that the FAIL of another has cut short decides nothing of its own.
    alone = all(one.where == "check" for one in statements)
    run_again = _prepare(drawn, rates, baselines, keep_going=alone)
    found: Counter[int] = Counter()
    looks = {n for n in (_FIRST_LOOK, runs // 4, runs) if n}
    for number in range(1, runs + 1):
        seed = Random(f"run/{drawn.number}/{number}").getrandbits(40)
        if draws and drawn.has_baseline:
            with tempfile.TemporaryDirectory() as folder:
                _measure(drawn, Path(folder), seed=seed + 1)
                try:
                    run_again = _prepare(drawn, rates, Path(folder), keep_going=alone)
                except TrialwiseError:
                    continue  # a baseline by chance too good or too poor to be compared with
        result = run_again(seed)
        found.update(place for place, one in enumerate(statements) if one.happens(result))
        if number in looks:
            wrong = [
                f"{one}: {found[place]} of {number} runs ({found[place] / number:.3f})"
                for place, one in enumerate(statements)
                if is_refuted(found[place], number, one)
            ]
            if wrong:
                return wrong
    return []


def is_refuted(happened: int, runs: int, stated: Statement) -> bool:
    """Return whether a frequency contradicts a stated chance (exact binomial test)."""
    chance = min(1.0, max(0.0, stated.chance))
    above = binom.sf(happened - 1, runs, chance)
    below = 1.0 if stated.is_bound else binom.cdf(happened, runs, chance)
    return bool(min(above, below) < LEVEL)
