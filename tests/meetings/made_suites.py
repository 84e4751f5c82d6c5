"""Suites made of features: what each feature writes into the file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

from tests.meetings.features import QUESTIONS, Feature, Pair, feature, make_pair

_INPUTS: Mapping[str, Any] = {
    "one": {"inputs": ["a"]},
    "three": {"inputs": ["a", "b", "c"]},
    "expected": {"inputs": [{"value": "a", "expected": "yes"}, {"value": "b", "expected": "yes"}]},
    "two samplings": {"samplings": {"first": ["a"], "second": ["b", "c"]}},
}
_CHECKS: Mapping[str, Any] = {
    "contains": {"contains": "yes"},
    "several": {"postconditions": [{"contains": "yes"}, {"length": {"max": 10}}]},
    "graders": {"graders": [{"contains": "yes", "weight": 3}, {"length": {"max": 10}}]},
    "python": {"python": "svc:is_yes"},
}
#: A seed where a suite gives none, so that two runs of it have the same trials.
SEED = 5


class MadeSuite:
    """A suite, as the features that it is made of; it has at most one for each key.

    Args:
        features: In any order.
    """

    def __init__(self, features: Iterable[Feature]) -> None:
        self.features = tuple(sorted(set(features)))

    def __repr__(self) -> str:
        return f"MadeSuite({'; '.join(map(str, self.features))})"

    def has(self, one: Feature) -> bool:
        """Return whether the suite has a key already, or a question where the feature is one."""
        return any(_clash(one, other) for other in self.features)

    def plus(self, *more: Feature) -> MadeSuite:
        """Return the suite with further features; those whose key it has are left out."""
        found = self
        for one in more:
            if not found.has(one):
                found = MadeSuite((*found.features, one))
        return found

    def minus(self, one: Feature) -> MadeSuite:
        """Return the suite without a feature."""
        return MadeSuite(each for each in self.features if each != one)

    @property
    def pairs(self) -> Iterator[Pair]:
        """The pairs of features that meet in it."""
        return (make_pair(*both) for both in combinations(self.features, 2))

    def of(self, place: str) -> dict[str, Any]:
        """Return the keys of a place with their values."""
        return {one.key: one.value for one in self.features if one.place == place}

    @property
    def document(self) -> dict[str, Any]:
        """What the suite file says."""
        service = self.of("service").get("is", "good")
        inputs = self.of("inputs").get("are", "three")
        contract = self.of("contract")
        under_test: dict[str, Any] = {"python": f"svc:{service}"}
        if "models" in contract:
            under_test = {"command": ["printf", "%s %s", "yes {model}", "{input}"]}
        first = {"name": "first", **self.of("criterion")}
        first |= _CHECKS[self.of("check").get("is", "contains")]
        criteria = [first]
        other = self.of("other").get("criterion")
        if other is not None:
            criteria.append({"name": "other", "contains": "yes", **other})
        if inputs == "two samplings":
            for one, sampling in zip(criteria, ("first", "second"), strict=False):
                one["sampling"] = sampling
            for gate in ("latency", "reliability", "stability", "metrics"):
                if gate in contract:
                    contract[gate] = {"sampling": "first", **contract[gate]}
        return {
            "name": "meeting",
            "service": under_test,
            **_INPUTS[inputs],
            "seed": SEED,
            **contract,
            "criteria": criteria,
        }

    @property
    def text(self) -> str:
        """The suite file; JSON is YAML."""
        return json.dumps(self.document, indent=1)

    @property
    def needs_baseline(self) -> bool:
        """Whether something in it is compared with a baseline."""
        return "baseline" in self.text


def _clash(one: Feature, other: Feature) -> bool:
    """Return whether two features cannot be in one suite: they are one key, or two questions."""
    if one[:2] == other[:2]:
        return True
    asks = one.place == other.place == "criterion"
    return asks and one.key in QUESTIONS and other.key in QUESTIONS


def is_possible(pair: Pair) -> bool:
    """Return whether a suite can have both features."""
    return not _clash(*pair)


#: What is tried where two features alone make no suite.
BASES: tuple[tuple[Feature, ...], ...] = (
    (feature("criterion", "at_least", "80%"),),
    (feature("criterion", "at_least", "80%"), feature("criterion", "trials", 120)),
    (feature("criterion", "at_least", "80%"), feature("criterion", "margin", "10%")),
    (feature("criterion", "never_fails", True),),
    (feature("criterion", "no_worse_than", "baseline"), feature("criterion", "trials", 120)),
    (
        feature("criterion", "mean_at_least", 0.6),
        feature("criterion", "trials", 120),
        feature("check", "is", "graders"),
    ),
    (feature("criterion", "report_only", True), feature("other", "criterion", {"at_least": "85%"})),
    (
        feature("criterion", "at_least", "80%"),
        feature("criterion", "pass_at", 0.5),
        feature("check", "is", "graders"),
    ),
    (feature("criterion", "at_least", "80%"), feature("contract", "intent", "smoke")),
)
