"""Measured baselines as pages: what is in force, how old it is, and what it holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from trialwise.documents.blocks import Document, Table, list_rows
from trialwise.documents.numbers import as_count, as_observed, as_seconds
from trialwise.documents.printable import near
from trialwise.errors import BaselineError
from trialwise.model.baseline import Baseline
from trialwise.model.evidence import Severity
from trialwise.procedures.guardrails import assess_baseline
from trialwise.procedures.selection import select_baseline
from trialwise.stats.latency_percentiles import nearest_rank_percentile

SCHEMA = "trialwise.baselines/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A baseline where it stands among the others of its contract."""

    path: Path
    baseline: Baseline
    in_force: bool
    """Whether it is the newest of its index: a run under its conditions is held against it."""
    validity: str

    @property
    def state(self) -> str:
        """In a word or two."""
        return "in force" if self.in_force else "superseded"

    def to_dict(self) -> dict[str, Any]:
        """Return the baseline as plain values."""
        one = self.baseline
        expires = one.expires_at
        return {
            "contract": one.contract,
            "identifier": one.identifier,
            "file": near(self.path),
            "created_at": one.created_at.isoformat(),
            "expires_at": None if expires is None else expires.isoformat(),
            "validity": self.validity,
            "epoch": one.epoch,
            "in_force": self.in_force,
            "covariates": dict(one.covariates),
            "factors": dict(one.factors),
            "criteria": {
                name: {"trials": each.trials, "passed": each.passed, "rate": each.rate}
                for name, each in one.criteria.items()
            },
        }


@dataclass(frozen=True, slots=True)
class Shelf:
    """All baselines of a folder, or of one contract, the oldest first."""

    entries: Sequence[Entry]
    now: datetime

    @classmethod
    def of(cls, found: Iterable[tuple[Path, Baseline]], now: datetime) -> Shelf:
        """Put baselines in their places.

        Args:
            found: What a store holds, the oldest first.
            now: When somebody looks.
        """
        pairs = list(found)
        every, entries = [baseline for _, baseline in pairs], []
        for path, one in pairs:
            # Asked of the selection that a run under its own conditions uses: a list with rules of
            # its own could differ from it.
            chosen = select_baseline(every, contract=one.contract, profile=one.covariates)
            valid = describe_validity(one, now)
            in_force = chosen.baseline is one
            entries.append(Entry(path=path, baseline=one, in_force=in_force, validity=valid))
        return cls(entries, now)

    def find(self, name: str) -> tuple[Path, Baseline]:
        """Find the baseline with an identifier, or the newest one of a contract.

        Raises:
            BaselineError: No baseline has this name, or several have this identifier.
        """
        by_name = [one for one in self.entries if one.baseline.identifier == name]
        if len(by_name) > 1:
            owners = ", ".join(one.baseline.contract for one in by_name)
            raise BaselineError(f"{name!r} is a baseline of {owners}: choose with --contract")
        of_contract = [one for one in self.entries if one.baseline.contract == name]
        # The oldest come first, so that the last baseline of a contract is its newest.
        for one in (by_name or of_contract)[-1:]:
            return one.path, one.baseline
        known = [one.baseline.identifier for one in self.entries if one.in_force]
        there = f"In force are {', '.join(known)}" if known else "Measure one: trialwise measure"
        raise BaselineError(f"no baseline {name!r}. {there}.")

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {"schema": SCHEMA, "baselines": [one.to_dict() for one in self.entries]}

    def build_page(self) -> Document:
        """Build a table for each contract: a line for each baseline, and one for each criterion."""
        contracts = dict.fromkeys(one.baseline.contract for one in self.entries)
        tables = ((name, self._tabulate(name)) for name in contracts)
        blocks = (Document(kind="Baselines", title=name, blocks=(one,)) for name, one in tables)
        return Document(kind="Baselines", title="", blocks=tuple(blocks))

    def _tabulate(self, contract: str) -> Table:
        rows: list[tuple[str, ...]] = []
        # The newest first, as the one in force is what most people look for.
        for one in reversed(self.entries):
            kept = one.baseline
            if kept.contract != contract:
                continue
            conditions = ", ".join(f"{name}={value}" for name, value in kept.covariates.items())
            name = f"{kept.identifier} ({conditions})" if conditions else kept.identifier
            age = f"{_write_span(self.now - kept.created_at)}, {one.validity}"
            rows.append((one.state, str(kept.epoch), f"{kept.created_at:%Y-%m-%d}", name, age))
            for name, rate, count, _ in _list_criteria(kept):
                rows.append(("", "", "", f"  {name}", f"{rate}  {count}"))
        # The widest last: an identifier alone may take half of a terminal.
        return list_rows(rows, ("state", "epoch", "created", "baseline", "age"))


def describe_validity(baseline: Baseline, now: datetime) -> str:
    """Return how long a baseline stays representative, in the bands of companion §8.4.2."""
    expires, grace_ends = baseline.expires_at, baseline.grace_ends_at
    if expires is None or grace_ends is None:
        return "no expiry"
    # Held against itself, a baseline can only be too old, and no other guardrail speaks.
    claim, profile, factors = baseline.claim, baseline.covariates, baseline.factors
    own: dict[str, Any] = {"claim": claim, "profile": profile, "factors": factors}
    guards = assess_baseline(baseline, scopes={}, covariates=(), now=now, **own)
    by_code = {guard.code: guard for guard in guards}
    if expired := by_code.get("expired"):
        # Within its grace an expired baseline may still be used, and the run says so (§8.4.2).
        if expired.severity is Severity.MINOR:
            return f"EXPIRED, grace ends in {_write_span(grace_ends - now)}"
        return f"EXPIRED {_write_span(now - expires)} ago"
    left = _write_span(expires - now)
    if expiring := by_code.get("expiring"):
        words = expiring.message.partition(":")[0].removeprefix("Baseline ")
        return f"{words}, in {left}"
    return f"expires in {left}"


def build_baseline_page(path: Path, baseline: Baseline, now: datetime) -> Document:
    """Build one baseline, with everything that decides whether it is a reference.

    Args:
        path: Its file.
        baseline: What the file holds.
        now: When somebody looks.
    """
    columns = ("criterion", "rate", "passed", "failures by reason")
    tables = (
        list_rows(_list_facts(path, baseline, now)),
        list_rows(_list_criteria(baseline), columns),
    )
    return Document(kind="Baseline", title="", blocks=tables)


def _list_facts(path: Path, baseline: Baseline, now: datetime) -> Iterator[tuple[str, str]]:
    measured = f"{baseline.created_at:%Y-%m-%d %H:%M} UTC"
    yield "contract", baseline.contract
    yield "identifier", baseline.identifier
    yield "file", near(path)
    yield "measured", f"{measured}, {_write_span(now - baseline.created_at)} ago"
    yield "validity", describe_validity(baseline, now)
    yield "epoch", str(baseline.epoch)
    yield "claim", baseline.claim.population.value
    yield from ((f"covariate {name}", value) for name, value in baseline.covariates.items())
    yield from ((f"factor {name}", value) for name, value in baseline.factors.items())
    for name, trials in baseline.run_trials.items():
        yield f"trials of {name}", as_count(trials, "trial")
    for name, latencies in baseline.latencies_s.items():
        # Only successful trials have a latency, and there may have been none.
        if latencies:
            p50, p95 = (nearest_rank_percentile(latencies, share) for share in (0.5, 0.95))
            yield f"latency of {name}", f"p50 {as_seconds(p50)}, p95 {as_seconds(p95)}"
    if baseline.run_id:
        yield "run", baseline.run_id


def _list_criteria(baseline: Baseline) -> Iterator[tuple[str, str, str, str]]:
    """List each criterion with its rate, its counts and why trials failed."""
    for name, one in baseline.criteria.items():
        reasons = {"condition": one.condition, "transform": one.transform, "no value": one.no_value}
        listed = ", ".join(f"{reason} {count}" for reason, count in reasons.items() if count)
        yield name, as_observed(one.rate), f"{one.passed:,} of {one.trials:,}", listed


def _write_span(span: timedelta) -> str:
    """Write a time between two dates, as coarse as somebody asks for it."""
    hours = span / timedelta(hours=1)
    if abs(hours) < 1:
        return f"{span / timedelta(minutes=1):.0f} min"
    # Somebody decides whether to measure again: minutes of an age in days are noise.
    return f"{hours:.0f} h" if abs(hours) < 48 else f"{hours / 24:.0f} days"
