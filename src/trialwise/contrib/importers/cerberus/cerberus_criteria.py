"""One contract of a study as a criterion: decided at the same trials, with the same verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trialwise.contrib.importers.cerberus.assertion_idioms import read_assertion
from trialwise.contrib.importers.cerberus.assertion_syntax import NotCarried
from trialwise.contrib.importers.cerberus.cerberus_judges import Panel, read_judge
from trialwise.contrib.importers.yaml_mappings import Keys
from trialwise.decimals import as_written, complement
from trialwise.declarations.written import Node
from trialwise.stats.sequential.bound import default_alternative
from trialwise.stats.sequential.design import SequentialDesign
from trialwise.suite.suite_problems import Problems

__all__ = ["CriterionRead", "read_criterion"]

#: What cerberus takes where a contract does not say.
_THRESHOLD, _CONFIDENCE, _TRIALS = 0.90, 0.95, 50
#: It is not to be configured there.
_BETA = 0.20
#: The longest design that is planned here.
_MOST_TRIALS = 20_000
_REMEDY = "Write this check as a Python function, and name it: `python: module:function`"
_CODE = ("name", "type", "assert", "threshold", "confidence", "trials")
_JUDGE = (
    *("name", "type", "rubric", "judge_panel", "source", "threshold", "confidence", "trials"),
    *("gold_set", "alpha_split"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionRead:
    """A criterion and what there is to say about it."""

    criterion: dict[str, Any]
    comment: str
    notes: tuple[str, ...] = ()
    is_smoke: bool = False
    """Whether no result of its trials would PASS, so that a verification would be refused."""


def read_criterion(
    node: Node, scenario: Mapping[str, Any], panel: Panel, problems: Problems
) -> CriterionRead:
    """The criterion of a contract; what is wrong with it is reported.

    Args:
        node: The contract.
        scenario: The study's.
        panel: The models that judge contracts ask.
        problems: Where to say what is wrong.
    """
    is_judge = (
        node.is_mapping and "type" in node.entries and node.entries["type"][1].value == "judge"
    )
    keys = Keys(
        node,
        problems,
        what="a contract",
        known=_JUDGE if is_judge else _CODE,
        required=("name", "type", *(("rubric",) if is_judge else ("assert",))),
    )
    name = keys.text("name", "the contract's name") or "?"
    comment = f"contract `{name}`, line {keys.line()}"
    keys.choice("type", "code", "judge")
    threshold = keys.number("threshold", 0.11, 1)
    confidence = keys.number("confidence", 0.5, 0.999)
    trials = keys.whole("trials", 1, _MOST_TRIALS)
    notes: tuple[str, ...] = ()
    asked: dict[str, Any] = {}
    if is_judge:
        asked, notes = read_judge(keys, panel)
    else:
        asked, notes = _postconditions(keys, scenario)
        source = keys.at("assert").value if "assert" in keys else ""
        comment = f"{comment}: {source}"
    rule = _Rule(
        name=name,
        threshold=_THRESHOLD if threshold is None else threshold,
        confidence=_CONFIDENCE if confidence is None else confidence,
        trials=_TRIALS if trials is None else trials,
    )
    return CriterionRead(
        criterion={"name": name, **asked, **rule.spell(keys)},
        comment=comment,
        notes=(*notes, *rule.notes(keys)),
        is_smoke=rule.never_passes,
    )


def _postconditions(
    keys: Keys, scenario: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    source = keys.text("assert", "an expression in JavaScript")
    if source is None or not scenario:
        return {}, ()
    try:
        read = read_assertion(source, scenario)
    except NotCarried as error:
        place = f" at character {error.at + 1}: {_around(source, error.at)}" if error.at else ""
        keys.refuse("assert", f"`assert`{place}: {error.reason}. {_REMEDY}")
        return {}, ()
    notes = tuple(f"Line {keys.line('assert')}: {note}." for note in read.notes)
    if len(read.postconditions) == 1:
        return dict(read.postconditions[0]), notes
    return {"postconditions": read.postconditions}, notes


def _around(source: str, at: int) -> str:
    text = " ".join(source[at : at + 30].split())
    return f"`{text}`" if text else "its end"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """A contract's threshold, and Wald's test of it."""

    name: str
    threshold: float
    confidence: float
    trials: int

    def spell(self, keys: Keys) -> dict[str, Any]:
        """As a criterion of a suite says it."""
        if self.threshold == 1:
            if self.first_pass is None:
                keys.refuse(
                    "trials" if "trials" in keys else "threshold",
                    f"`threshold: 1` is decided by {self._needed} trials without a failure, and "
                    f"`trials` allows {self.trials}: nothing here ends INCONCLUSIVE so",
                )
            return {"never_fails": True, "trials": self.first_pass or 1}
        margin = float(as_written(self.threshold) - as_written(default_alternative(self.threshold)))
        rule: dict[str, Any] = {"at_least": self.threshold, "margin": margin, "method": "wald"}
        # Written out: nothing here supplies a margin or another error limit for a wrong PASS.
        rule["beta"] = _BETA
        if self.confidence != _CONFIDENCE:
            rule["confidence"] = self.confidence
        return {**rule, "max_trials": self.trials}

    def notes(self, keys: Keys) -> tuple[str, ...]:
        """What is different, or odd."""
        note = ""
        if self.threshold == 1:
            note = (
                f"`{self.name}` (line {keys.line('threshold')}) asks for a rate of 1: it FAILs at "
                f"the first failure and PASSes after {self.first_pass} trials without one, as "
                "cerberus decides it."
            )
        elif self.never_passes:
            note = (
                f"`{self.name}` (line {keys.line('trials')}) cannot PASS within {self.trials} "
                "trials, here as there: its study runs as a smoke test, since a verification "
                "would be refused."
            )
        return (note,) if note else ()

    @property
    def never_passes(self) -> bool:
        """Whether no result would PASS."""
        return self.threshold < 1 and self.first_pass is None

    @property
    def first_pass(self) -> int | None:
        """The fewest trials that PASS."""
        accept = self._design(self.trials).accept
        return next((n for n, most in enumerate(accept) if most >= 0), None)

    @property
    def _needed(self) -> int:
        accept = self._design(1000).accept
        return next(n for n, most in enumerate(accept) if most >= 0)

    def _design(self, cap: int) -> SequentialDesign:
        bad = default_alternative(self.threshold)
        return SequentialDesign.wald(
            self.threshold, bad, alpha=complement(self.confidence), beta=_BETA, cap=cap
        )
