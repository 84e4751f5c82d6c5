"""The features that meet: every key of a criterion, of a contract and of a run, with values.

The keys are taken from the declarations, so that a new key takes part by itself. A key whose kind
says what it may hold (a choice, a flag, a count, a rate and so on) needs no line here. Any other
key has its values in `VALUES`, or is left out in `LEFT_OUT` with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from trialwise.declarations.scalars import Choice, Count, Duration, Flag, Kind, Money, Pace, Rate
from trialwise.declarations.signatures import setting_keys
from trialwise.model.criterion import Criterion
from trialwise.suite.keys import CONTRACT

#: The keys that ask something of a criterion; a criterion has one of them.
QUESTIONS = ("at_least", "no_worse_than", "never_fails", "mean_at_least", "report_only")


class Feature(NamedTuple):
    """One thing that a suite may have: a key with a value, or a service, inputs and so on."""

    place: str
    """`criterion`, `contract`, `other` (a second criterion), `service`, `inputs` or `check`."""
    key: str
    written: str
    """Its value as JSON, which is YAML too."""

    @property
    def value(self) -> Any:
        """What the key holds."""
        return json.loads(self.written)

    def __str__(self) -> str:
        return f"{self.place}.{self.key}={self.written}"


def feature(place: str, key: str, value: Any) -> Feature:
    """Return a feature with a value."""
    return Feature(place, key, json.dumps(value))


class Pair(NamedTuple):
    """Two features that occur in one suite, in the order of their names."""

    one: Feature
    other: Feature

    def __str__(self) -> str:
        return f"{self.one} with {self.other}"


def make_pair(one: Feature, other: Feature) -> Pair:
    """Return two features as a pair, whichever comes first."""
    first, second = sorted((one, other), key=str)
    return Pair(first, second)


#: Services of known behaviour. What each answers depends on the seed of the trial alone, so that it
#: is the same through every front end and executor.
SERVICES = '''
import asyncio
from pathlib import Path
from random import Random

#: While a baseline is measured every service is a good one.
MEASURING = Path(__file__).with_name("measuring")


class Refused(ConnectionRefusedError):
    """Nobody was there; the next attempt need not wait."""

    status_code = 503
    headers = {"retry-after": "0"}


def perfect(question, seed):
    return "yes"


def good(question, seed):
    return "yes" if Random(seed).random() < 0.93 else "no"


def poor(question, seed):
    return "yes" if Random(seed).random() < 0.6 else "no"


def raising(question, seed):
    if MEASURING.exists():
        return good(question, seed)
    if Random(seed).random() < 0.1:
        raise ValueError("broken")
    return "yes"


def dead(question, seed):
    if MEASURING.exists():
        return good(question, seed)
    raise ValueError("never replies")


def outages(question, seed):
    if MEASURING.exists():
        return good(question, seed)
    if Random(seed).random() < 0.15:
        raise Refused("down at times")
    return good(question, seed + 1)


def down(question, seed):
    if MEASURING.exists():
        return good(question, seed)
    raise Refused("always down")


async def slow(question, seed):
    await asyncio.sleep(Random(seed).random() / 500)
    return good(question, seed)


def is_active(reply):
    return True


def prepare(seed):
    pass


def is_yes(text):
    return text == "yes"
'''

#: Values of keys whose kind does not say enough, or says too much. None stands for no such key.
VALUES: dict[tuple[str, str], tuple[Any, ...]] = {
    ("criterion", "at_least"): ("80%", "90%"),
    ("criterion", "no_worse_than"): ("baseline",),
    ("criterion", "never_fails"): (True,),
    ("criterion", "report_only"): (True,),
    ("criterion", "mean_at_least"): (0.6,),
    ("criterion", "pass_from"): ("70%",),
    ("criterion", "pass_at"): (0.5,),
    ("criterion", "trials"): (40, 120),
    ("criterion", "max_trials"): (60, 200),
    ("criterion", "margin"): ("10%",),
    ("criterion", "confidence"): ("90%",),
    ("criterion", "alpha"): ("10%",),
    ("criterion", "beta"): ("10%",),
    ("criterion", "power"): ("80%",),
    ("criterion", "ref"): ("SLA 4.3",),
    ("criterion", "class"): ("SAFETY",),
    ("criterion", "discharged_by"): ("a guardrail",),
    ("criterion", "min_probes"): (5, 500),
    ("contract", "description"): ("What it is for.",),
    ("contract", "trials"): (50, 120),
    ("contract", "max_trials"): (60, 200),
    ("contract", "seed"): (3, 8),
    ("contract", "concurrency"): (1, 2, 8),
    ("contract", "rate"): ("5000/s",),
    ("contract", "timeout"): ("5s",),
    ("contract", "retries"): (0, 1),
    ("contract", "budget"): ({"trials": 30}, {"time": "60s"}, {"tokens": 1000}, {"money": "$5"}),
    ("contract", "cost_per_trial"): ("$0.01",),
    ("contract", "abort"): ({"after": 5}, {"to": "fail"}, {"max_error_rate": 1}),
    ("contract", "overrides"): (["MISSING_BASELINE"],),
    ("contract", "horizon"): (10, {"gates": 6}, {"days": 30}),
    ("contract", "family"): ("nightly",),
    ("contract", "family_size"): (4,),
    ("contract", "claim"): (
        {"population": "fixed-inputs"},
        {"population": "no-generalisation"},
        {"population": "superpopulation", "target_population": "all questions"},
    ),
    ("contract", "covariates"): (["weekday"], [{"name": "region", "value": "eu"}]),
    ("contract", "factors"): ({"prompt": "v1"},),
    ("contract", "latency"): (
        {"p95": "2s"},
        {"p50": "1s", "enforced": True},
        {"baseline": ["p50"]},
    ),
    ("contract", "reliability"): (
        {},
        {"expect": [{"target": "reliability.runs", "matcher": {"schema": {"minimum": 2}}}]},
    ),
    ("contract", "stability"): ({},),
    ("contract", "metrics"): (
        {},
        {
            "k": [1, 2],
            "expect": [{"target": "metrics.pass_hat.2", "matcher": {"schema": {"minimum": 0.1}}}],
        },
    ),
    ("contract", "models"): (["good", "perfect"],),
    ("contract", "arms"): ({"second": {"factors": {"prompt": "v2"}}},),
    ("contract", "graders"): ([{"contains": "yes"}],),
    ("contract", "activity"): ("svc:is_active",),
    ("contract", "before_each"): ("svc:prepare",),
    ("contract", "prevalence"): ({"rate": "1%", "source": "pre-guardrail"},),
    ("contract", "validity"): ({"days": 30},),
    ("contract", "tags"): (["nightly"],),
}

#: Keys that are not features of their own, with the reason.
LEFT_OUT = {
    ("contract", "name"): "every contract has one",
    ("contract", "service"): "`service` features stand for it",
    ("contract", "inputs"): "`inputs` features stand for it",
    ("contract", "samplings"): "`inputs` features stand for it",
    ("contract", "criteria"): "`criterion` and `other` features stand for it",
    ("contract", "executor"): "every suite is run on every executor",
    ("contract", "baseline"): "its value is drawn when a baseline is measured",
    ("criterion", "sampling"): "`inputs` features stand for it",
    ("criterion", "procedure"): "names a procedure of another distribution",
}

#: What stands beside the first criterion.
_OTHERS: tuple[dict[str, Any], ...] = (
    {"at_least": "85%"},
    {"at_least": "70%", "trials": 60},
    {"never_fails": True},
    {"never_fails": True, "trials": 5},
    {"report_only": True},
    {"at_least": "80%", "power": "80%"},
)
_INPUTS: tuple[Any, ...] = ("one", "three", "expected", "two samplings")
_CHECKS: tuple[Any, ...] = ("contains", "several", "graders", "python")
_SERVICE_NAMES = ("perfect", "good", "poor", "raising", "dead", "outages", "down", "slow")


def list_values(place: str, key: str, kind: Kind) -> tuple[Any, ...]:
    """List the values of a key: those of the table, else those that its kind tells."""
    if (place, key) in VALUES:
        return VALUES[place, key]
    if isinstance(kind, Choice):
        return tuple(dict.fromkeys(map(str, kind.words)))
    if isinstance(kind, Flag):
        return (True, False)
    usual: tuple[tuple[type[Kind], Any], ...] = (
        (Count, 3),
        (Rate, "90%"),
        (Duration, "5s"),
        (Money, "$1"),
        (Pace, "1000/s"),
    )
    return next(((value,) for of, value in usual if isinstance(kind, of)), ())


def list_keys() -> Iterator[tuple[str, str, Kind]]:
    """List every key of a criterion, of a contract and of a run, with its kind."""
    for key in setting_keys(Criterion):
        yield "criterion", key.name, key.kind
    for key in CONTRACT.keys:
        yield "contract", key.name, key.kind


def list_features() -> list[Feature]:
    """List every feature that suites are made of."""
    found = [
        feature(place, key, value)
        for place, key, kind in list_keys()
        if (place, key) not in LEFT_OUT
        for value in list_values(place, key, kind)
    ]
    found += [feature("other", "criterion", one) for one in _OTHERS]
    found += [feature("inputs", "are", one) for one in _INPUTS]
    found += [feature("check", "is", one) for one in _CHECKS]
    found += [feature("service", "is", one) for one in _SERVICE_NAMES]
    return found
