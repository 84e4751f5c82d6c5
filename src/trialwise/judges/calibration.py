"""What is known of a judge's errors: measured once against a gold set, kept as a file.

A calibration belongs to one judge, word for word: another rubric, juror, quorum or prompt makes
another judge, whose errors nobody knows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from trialwise.errors import TrialwiseError
from trialwise.regular_files import read_regular
from trialwise.stats import agreement
from trialwise.stats.judge_certification import (
    FEWEST_UNITS,
    RELIABLE,
    Certification,
    alpha_lower_bound,
    certify_judge,
    labels_to_certify,
)
from trialwise.stats.judge_correction import JudgeAccuracy, judge_accuracy
from trialwise.stats.result_types import Interval, Rule, Undefined
from trialwise.validation import require_count

_FORMAT = 1
_AGAIN = "write it again with `trialwise judge calibrate`"
#: Of the bootstrap; fixed, so that the same labels always give the same interval.
_SEED = 20_260_101
#: Units without a verdict are not missing at random: the hard ones time out.
_MOST_MISSING = 0.10


class CalibrationError(TrialwiseError):
    """A calibration is missing, unreadable, or not as it was written."""


@dataclass(frozen=True, slots=True)
class GoldFiles:
    """Where a judge's gold set lies, and where what was measured by it is kept.

    >>> GoldFiles.beside(Path("gold/polite.yaml")).calibration.name
    'polite.calibration.json'
    """

    gold: Path
    calibration: Path

    @classmethod
    def beside(cls, gold: Path) -> GoldFiles:
        """Return the usual place: beside the gold set."""
        return cls(gold, gold.with_name(f"{gold.stem}.calibration.json"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A judge's verdicts beside people's labels.

    >>> from trialwise.stats.agreement import Confusion
    >>> calibration = Calibration(
    ...     judge="5f3a", gold="9c21", provenance="two agents, May",
    ...     confusion=Confusion(true_pass=48, false_pass=2, true_fail=48, false_fail=2),
    ... )
    >>> round(calibration.alpha, 4), calibration.marks(judge="5f3a")
    (0.9204, ())
    """

    judge: str
    """The judge's identity, when it was measured."""
    gold: str
    """The gold set's fingerprint."""
    provenance: str
    confusion: agreement.Confusion
    missing: int = 0
    """Units that got no verdict."""
    measured_at: str = ""
    wrong: tuple[str, ...] = ()
    """The units on which judge and people differ, for people to look at."""
    is_oriented: bool = False
    """Whether every pair of a gold set of pairs says which side is the candidate's."""
    changed: bool = field(default=False, compare=False)
    """Whether the gold set is another one by now."""

    @property
    def alpha(self) -> float | Undefined:
        """Krippendorff's alpha of the judge and people, nominal."""
        return agreement.krippendorff_alpha(self._pairs)

    @property
    def alpha_interval(self) -> Interval | Undefined:
        """By a bootstrap over units."""
        return agreement.krippendorff_alpha_interval(self._pairs, seed=_SEED)

    @property
    def alpha_shown(self) -> float | Undefined:
        """The alpha that the labels show at 95 % confidence, which certifies the judge."""
        return alpha_lower_bound(self.confusion)

    @property
    def kappa(self) -> float | Undefined:
        """Cohen's kappa of the judge and people."""
        return agreement.cohen_kappa(*zip(*self._pairs, strict=True))

    @property
    def kappa_interval(self) -> Interval | Undefined:
        """By a bootstrap over units."""
        return agreement.cohen_kappa_interval(*zip(*self._pairs, strict=True), seed=_SEED)

    @property
    def certification(self) -> Certification:
        """What its agreement allows."""
        return certify_judge(self.confusion)

    def accuracy(self, *, confidence: float = 0.95, rule: Rule = "exact") -> JudgeAccuracy:
        """Sensitivity and specificity with their intervals."""
        return judge_accuracy(self.confusion, confidence=confidence, rule=rule)

    def marks(self, *, judge: str) -> tuple[str, ...]:
        """Return why the judge's verdict can only advise; nothing where it may decide.

        Args:
            judge: The identity of the judge that is asked now.
        """
        counts = self.confusion
        found = []
        if judge != self.judge:
            found.append(
                "the judge was calibrated as another one: its rubric, jurors, quorum or prompt "
                "changed since; calibrate it again"
            )
        if self.changed:
            found.append("its gold set changed since it was calibrated; calibrate it again")
        if not self.provenance:
            found.append("its gold set does not say where its labels come from")
        if counts.labels < FEWEST_UNITS:
            found.append(f"its gold set has {counts.labels} labels, {FEWEST_UNITS} are needed")
        if not counts.good or not counts.bad:
            missing = "passes" if not counts.good else "fails"
            found.append(f"nothing in its gold set {missing}, so half of its errors are unknown")
        if self.missing > _MOST_MISSING * (self.missing + counts.labels):
            found.append(f"it gave no verdict on {self.missing} units of its gold set")
        if self.certification is not Certification.PASS and counts.labels >= FEWEST_UNITS:
            found.extend(self._explain_certification())
        return tuple(found)

    def _explain_certification(self) -> Iterator[str]:
        if isinstance(self.alpha, Undefined):
            return  # all labels are alike, which is a reason of its own
        if self.alpha < RELIABLE:
            yield (
                f"it agrees with people too little: alpha is {self.alpha:.3f}, {RELIABLE:.3f} is "
                "needed"
            )
            return
        needed = labels_to_certify(self.confusion)
        way_out = f"; about {needed:,} labels would show it" if isinstance(needed, int) else ""
        yield (
            f"its {self.confusion.labels:,} labels show too little: alpha is {self.alpha:.3f}, at "
            f"least {self.alpha_shown:.3f} is shown, {RELIABLE:.3f} is needed{way_out}"
        )

    @property
    def _pairs(self) -> list[tuple[bool, bool]]:
        counts = self.confusion
        return (
            [(True, True)] * counts.true_pass
            + [(True, False)] * counts.false_pass
            + [(False, False)] * counts.true_fail
            + [(False, True)] * counts.false_fail
        )


def write_calibration(path: Path, calibration: Calibration) -> None:
    """Write a calibration, for `read_calibration` and for people: a file to commit.

    Raises:
        CalibrationError: The file cannot be written.
    """
    fields = asdict(calibration)
    del fields["changed"]
    if not calibration.is_oriented:
        del fields["is_oriented"]
    text = json.dumps({"format": _FORMAT, **fields}, indent=2, ensure_ascii=False)
    beside = path.with_name(f"{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text + "\n", encoding="utf-8", errors="replace")
        beside.replace(path)
    except OSError as error:
        message = f"{path}: the calibration cannot be written: {error.strerror}"
        raise CalibrationError(message) from error


def read_calibration(path: Path, *, gold: str | None = None) -> Calibration:
    """Read the calibration that a file holds.

    Args:
        path: Where `write_calibration` wrote it.
        gold: The fingerprint of the gold set as it is now; None does not compare.

    Raises:
        CalibrationError: There is no such file, or it does not hold one.
    """
    try:
        kept = json.loads(read_regular(path))
    except OSError as error:
        message = f"{path}: the calibration cannot be read: {error.strerror}"
        raise CalibrationError(message) from error
    except (ValueError, RecursionError) as error:
        message = f"{path}: the calibration is not JSON ({error}); {_AGAIN}"
        raise CalibrationError(message) from None
    try:
        found = _calibration(kept)
    except KeyError as error:
        message = f"{path}: this is not a calibration of a judge: it lacks {error}; {_AGAIN}"
        raise CalibrationError(message) from None
    except (TypeError, ValueError) as error:
        message = f"{path}: this is not a calibration of a judge ({error}); {_AGAIN}"
        raise CalibrationError(message) from None
    return replace(found, changed=gold is not None and gold != found.gold)


def _calibration(kept: Any) -> Calibration:
    if not isinstance(kept, Mapping) or kept.get("format") != _FORMAT:
        raise TypeError(f"`format` {_FORMAT} is expected")
    return Calibration(
        judge=_text(kept, "judge"),
        gold=_text(kept, "gold"),
        provenance=_text(kept, "provenance"),
        measured_at=_text(kept, "measured_at"),
        confusion=agreement.Confusion(**kept["confusion"]),
        missing=require_count("missing", kept["missing"]),
        wrong=tuple(map(str, kept["wrong"])),
        is_oriented=kept.get("is_oriented") is True,
    )


def _text(kept: Mapping[str, Any], name: str) -> str:
    """A null must not become the text "None", which would pass for a provenance."""
    if not isinstance(kept[name], str):
        raise TypeError(f"`{name}` must be text")
    return str(kept[name])
