"""A sequential design: when to stop, with which verdict, and what that does at every true rate.

The value that everything else in this package makes or uses. It carries its hypotheses and its two
boundaries and nothing that would have to be searched for again, so that it can be stored, hashed,
compared and used without the machinery that found it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from trialwise.errors import InvalidArgument
from trialwise.stats.result_types import Decision, Undefined
from trialwise.stats.sequential import bound as bounds
from trialwise.stats.sequential import design_methods, stopped_rates, walks
from trialwise.stats.sequential.bound import Hypotheses, Mix
from trialwise.validation import require_choice, require_count, require_positive, require_rate

if TYPE_CHECKING:
    from trialwise.stats.sequential.shipped_designs import DesignCache

NO_CERTIFICATE = Undefined("only an optimal design is compared with the least objective possible")


class Method(StrEnum):
    """How a design was made."""

    WALD = "wald"
    CALIBRATED = "calibrated"
    STRICT = "strict"
    OPTIMAL = "optimal"
    FIXED = "fixed"


class Asked(TypedDict, total=False):
    """What a design for two rates may be asked for."""

    alpha: float
    """P(FAIL) at p0, strictly between 0 and 1; 0.05 unless given."""
    beta: float
    """P(PASS) at p1, together with alpha below 1; 0.20 unless given."""
    cap: int | None
    """The most trials; twice the exact fixed sample unless given."""
    batch: int
    """Verdicts fall at multiples of this many trials, and at the cap; 1 unless given."""


def _check_asked(
    p0: float,
    p1: float | None,
    *,
    alpha: float = 0.05,
    beta: float = 0.20,
    cap: int | None = None,
    batch: int = 1,
) -> tuple[Hypotheses, int | None, int]:
    hypotheses = Hypotheses.from_numbers(p0, p1, alpha, beta)
    size = require_count("batch", batch, minimum=1)
    return hypotheses, None if cap is None else bounds.check_cap(cap), size


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialDesign:
    """A test of "the rate is at least p0" against "at most p1" that stops as soon as it may.

    After n trials with f failures: PASS where f ≤ accept[n], FAIL where f ≥ reject[n],
    INCONCLUSIVE where futile[n] holds f, else go on; at the cap what is left is INCONCLUSIVE. Make
    one with `strict`, where both rates are the required one, or with `optimal`, `calibrated`,
    `wald` or `fixed`.

    Examples
    --------
    >>> design = SequentialDesign.optimal(0.90, 0.80, cap=50)
    >>> design.decide(13, 0), design.decide(4, 4), design.decide(13, 1)
    (<Decision.PASS: 'PASS'>, <Decision.FAIL: 'FAIL'>, None)
    >>> curve = design.operating_characteristic(0.90)
    >>> curve.fails <= 0.05, curve.inconclusive < 0.13, curve.mean_trials < 28.5
    (True, True, True)
    """

    method: Method
    p0: float
    """The good rate: P(FAIL) is at most alpha here and above."""
    p1: float
    """The bad rate: P(PASS) is at most beta here and below."""
    alpha: float
    beta: float
    cap: int
    """The most trials."""
    batch: int = 1
    """Verdicts fall at multiples of this many trials, and at the cap."""
    accept: tuple[int, ...]
    """The most failures that PASS after n trials, −1 for none, n = 0 … cap."""
    reject: tuple[int, ...]
    """The fewest failures that FAIL after n trials, n + 1 for none, n = 0 … cap."""
    mix: Mix
    """The true rates, with weights, over which expected trials were made few."""
    inconclusive_cost: float = 100.0
    """What an open end counted for, in trials."""
    certificate: float | Undefined = NO_CERTIFICATE
    """Objective over the exact least objective of any test with this cap; 1 cannot be beaten."""
    futile: tuple[tuple[int, int], ...] = ()
    """For n = 0 … cap, the fewest and the most failures at which a decision has become so
    improbable that the test stops; (n + 1, −1) for none. Empty where it never gives up."""
    _reach: tuple[tuple[int, int], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.method is Method.STRICT:
            Hypotheses.of_rate(self.p0, self.alpha, self.beta)
            if self.p1 != self.p0:
                raise InvalidArgument("p1", self.p1, f"equal p0 ({self.p0}) in a strict design")
        else:
            Hypotheses.from_numbers(self.p0, self.p1, self.alpha, self.beta)
        require_choice("method", self.method, tuple(Method))
        require_positive("inconclusive_cost", self.inconclusive_cost)
        if not isinstance(self.certificate, Undefined):
            require_positive("certificate", self.certificate)
        looks = bounds.list_looks(
            bounds.check_cap(self.cap), require_count("batch", self.batch, minimum=1)
        )
        walks.check_boundaries(self, looks)
        walks.check_futile(self, looks)
        object.__setattr__(self, "_reach", walks.reach(self))

    # --- Making one ---------------------------------------------------------------------------

    @classmethod
    def optimal(
        cls,
        p0: float,
        p1: float,
        *,
        mix: Mix | None = None,
        cache: DesignCache | None = None,
        **asked: Unpack[Asked],
    ) -> SequentialDesign:
        """The design with the fewest expected trials whose exact errors are at most alpha and beta.

        Found by backward induction at two prices, a linear programme for the prices and an exact
        search for what whole states leave of the errors; `certificate` says how near it comes to
        the least objective of any test. A cap that suffices (`bound.fixed_size`) gives two
        verdicts; a smaller one three, an open end counted at 100 trials (see `shortfall`).

        Parameters
        ----------
        p0, p1 : float
            The good and the bad rate, 0 < p1 < p0 ≤ 1.
        mix : sequence of (rate, weight), optional
            True rates over which to average trials; p0 and p1 evenly where none is given.
        cache : DesignCache, optional
            Where designs that do not ship with the package are kept between runs.
        alpha, beta, cap, batch
            See `Asked`.

        Examples
        --------
        >>> SequentialDesign.optimal(0.90, 0.80).certificate < 1.001
        True
        """
        from trialwise.stats.sequential.shipped_designs import optimal_design

        hypotheses, cap, batch = _check_asked(p0, p1, **asked)
        rates = None if mix is None else bounds.check_mix(mix)
        cap = bounds.resolve_cap(hypotheses, cap, batch)
        return optimal_design(hypotheses, cap, batch, rates, cache)

    @classmethod
    def strict(
        cls,
        rate: float,
        *,
        alpha: float = 0.05,
        beta: float = 0.05,
        cap: int | None = None,
        batch: int = 1,
        cache: DesignCache | None = None,
    ) -> SequentialDesign:
        """The test that shows on which side of a required rate the true rate lies.

        P(PASS) is at most beta at every true rate up to the required one, and P(FAIL) at most
        alpha at every rate from it on. Near the required rate many runs end INCONCLUSIVE. Among
        the tests with these errors it makes an objective least: expected trials at rates far from
        the required one, and a price for every run that does not decide at rates nearer to it
        (`best_rules`). `certificate` says how near it comes to the least possible.

        Parameters
        ----------
        rate : float
            The required rate, strictly between 0 and 1.
        alpha, beta : float
            The probability of FAIL and of PASS at the required rate.
        cap : int, optional
            The most trials; by default `default_strict_cap`.
        batch : int
            Verdicts fall at multiples of this many trials, and at the cap.
        cache : DesignCache, optional
            Where designs that do not ship with the package are kept between runs.

        Examples
        --------
        >>> design = SequentialDesign.strict(0.90, cap=200)
        >>> at_required = design.operating_characteristic(0.90)
        >>> at_required.passes <= 0.05, at_required.fails <= 0.05
        (True, True)
        >>> curve = design.operating_characteristic(0.97)
        >>> curve.passes > 0.985, curve.mean_trials < 83
        (True, True)
        """
        from trialwise.stats.sequential.shipped_designs import strict_design

        hypotheses = Hypotheses.of_rate(rate, alpha, beta)
        size = require_count("batch", batch, minimum=1)
        return strict_design(
            hypotheses, None if cap is None else bounds.check_cap(cap), size, cache
        )

    @classmethod
    def wald(cls, p0: float, p1: float | None = None, **asked: Unpack[Asked]) -> SequentialDesign:
        """Wald's test (1945), cut at the cap: what is open there is INCONCLUSIVE.

        PASS where the log likelihood ratio reaches log((1−alpha)/beta), FAIL where it falls to
        log(alpha/(1−beta)), both inclusive within 1e-12. The cut changes both promises; see the
        operating characteristic. Parameters as in `optimal`; p1 is max(0.01, p0 − 0.10) where
        none is given.

        Examples
        --------
        >>> design = SequentialDesign.wald(0.90, cap=50)
        >>> design.p1, design.decide(14, 0), design.decide(4, 4)
        (0.8, <Decision.PASS: 'PASS'>, <Decision.FAIL: 'FAIL'>)
        """
        hypotheses, cap, batch = _check_asked(p0, p1, **asked)
        cap = bounds.resolve_cap(hypotheses, cap, batch)
        rule = design_methods.find_wald(hypotheses, cap, batch)
        return cls.from_rule(Method.WALD, hypotheses, batch, rule)

    @classmethod
    def calibrated(
        cls, p0: float, p1: float | None = None, **asked: Unpack[Asked]
    ) -> SequentialDesign:
        """Wald's lines, moved until the exact errors meet alpha and beta at this cap.

        Parameters as in `wald`. A cap that suffices to decide gives two verdicts.

        Examples
        --------
        >>> curve = SequentialDesign.calibrated(0.90, 0.80).operating_characteristic(0.90)
        >>> 0.049 < curve.fails <= 0.05, curve.inconclusive
        (True, 0.0)
        """
        hypotheses, cap, batch = _check_asked(p0, p1, **asked)
        cap, mix = bounds.resolve_cap(hypotheses, cap, batch), bounds.even_mix(hypotheses)
        rule = design_methods.find_calibrated(hypotheses, cap, batch, mix)
        return cls.from_rule(Method.CALIBRATED, hypotheses, batch, rule)

    @classmethod
    def fixed(cls, p0: float, p1: float | None = None, **asked: Unpack[Asked]) -> SequentialDesign:
        """The smallest fixed sample with both errors exact, stopped once its verdict is certain.

        Parameters as in `wald`. Where the cap is smaller than that sample, all of it is used and
        the counts in between are INCONCLUSIVE.

        Examples
        --------
        >>> design = SequentialDesign.fixed(0.90, 0.80)
        >>> design.cap, design.accept[-1], design.reject[-1]
        (78, 12, 13)
        """
        hypotheses, cap, batch = _check_asked(p0, p1, **asked)
        rule = design_methods.find_fixed(hypotheses, cap, batch)
        return cls.from_rule(Method.FIXED, hypotheses, batch, rule)

    @classmethod
    def from_rule(
        cls,
        method: Method,
        hypotheses: Hypotheses,
        batch: int,
        rule: walks.Rule,
        *,
        mix: Mix | None = None,
        certificate: float | Undefined = NO_CERTIFICATE,
    ) -> SequentialDesign:
        """The design of a rule that some method found for two hypotheses."""
        gives_up = any(low <= high for low, high in rule.futile[:-1])
        return cls(
            method=method,
            p0=hypotheses.p0,
            p1=hypotheses.p1,
            alpha=hypotheses.alpha,
            beta=hypotheses.beta,
            cap=len(rule.accept) - 1,
            batch=batch,
            accept=tuple(rule.accept),
            reject=tuple(rule.reject),
            mix=mix or bounds.even_mix(hypotheses),
            certificate=certificate,
            futile=tuple(rule.futile) if gives_up else (),
        )

    # --- Using one ----------------------------------------------------------------------------

    def decide(self, trials: int, failures: int) -> Decision | None:
        """The verdict after some trials, or None to go on.

        Raises `InvalidArgument` for counts that the design cannot reach, because it would have
        decided before.
        """
        n, f = self._check_counts(trials, failures)
        return walks.decision_at(self, n, f)

    def operating_characteristic(self, p: float) -> walks.OperatingCharacteristic:
        """What the design does at true rate p: P(PASS), P(FAIL), P(INCONCLUSIVE) and trials."""
        return _characteristic(self, require_rate("p", p))

    @property
    def always_decides(self) -> bool:
        """Whether no run can end INCONCLUSIVE."""
        low, high = self._reach[self.cap]
        closes = low > high or self.accept[self.cap] + 1 == self.reject[self.cap]
        return closes and not self.futile

    @property
    def shortfall(self) -> bounds.Shortfall | None:
        """What a cap this small leaves undecided whatever the rule, or None where it suffices."""
        if self.method is Method.STRICT:
            return None  # no cap decides every run where the two rates are one
        rates = (self.p0, self.p1)
        levels = {"alpha": self.alpha, "beta": self.beta}
        return bounds.shortfall(*rates, cap=self.cap, batch=self.batch, **levels)

    # --- After stopping -----------------------------------------------------------------------

    # Functions of a design, its trials and its failures, taken as methods.
    interval = stopped_rates.stopped_interval
    decision_interval = stopped_rates.decision_interval
    estimate = stopped_rates.stopped_estimate

    # --- Keeping one --------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The design as plain values, fit for JSON."""
        undefined = isinstance(self.certificate, Undefined)
        return {name: getattr(self, name) for name in _KEPT} | {
            "method": str(self.method),
            "accept": list(self.accept),
            "reject": list(self.reject),
            "mix": [list(pair) for pair in self.mix],
            "certificate": None if undefined else self.certificate,
            "futile": [list(span) for span in self.futile],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> SequentialDesign:
        """The design that `to_dict` wrote; anything else is refused.

        Examples
        --------
        >>> design = SequentialDesign.fixed(0.90, 0.80)
        >>> SequentialDesign.from_dict(design.to_dict()) == design
        True
        """
        # Designs that never give up were kept without the key until 0.2.
        if {*values, "futile"} != {*_KEPT}:
            raise InvalidArgument("values", values, f"be a mapping of {', '.join(sorted(_KEPT))}")
        kept = dict(values)
        method = require_choice("method", kept["method"], tuple(map(str, Method)))
        for name in ("accept", "reject"):
            if not isinstance(kept[name], list | tuple):
                raise InvalidArgument(name, kept[name], "be a list of whole numbers")
            kept[name] = tuple(kept[name])
        spans = kept.get("futile", ())
        if not isinstance(spans, list | tuple) or not all(len(span) == 2 for span in spans):
            raise InvalidArgument("futile", spans, "be a list of pairs")
        kept["futile"] = tuple((low, high) for low, high in spans)
        if kept["certificate"] is None:
            kept["certificate"] = NO_CERTIFICATE
        return cls(**{**kept, "method": Method(method), "mix": bounds.check_mix(kept["mix"])})

    def _check_counts(self, trials: int, failures: int) -> tuple[int, int]:
        n, f = require_count("trials", trials), require_count("failures", failures)
        if n > self.cap:
            raise InvalidArgument("trials", trials, f"be at most the cap ({self.cap})")
        low, high = self._reach[n]
        if not low <= f <= high:
            span = f"{low} to {high}" if low <= high else "no number, as it stops before"
            raise InvalidArgument(
                "failures", failures, f"be a count this design can reach in {n} trials ({span})"
            )
        return n, f


#: What a kept design holds.
_KEPT = tuple(one.name for one in fields(SequentialDesign) if one.init)


# A contract may have hundreds of criteria that ask the same, and each is forecast several times.
_characteristic = lru_cache(maxsize=256)(walks.characteristic)
