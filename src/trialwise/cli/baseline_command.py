"""`trialwise baseline`: the measured references of a project, looked at and looked after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.options import json_option
from trialwise.errors import BaselineError

if TYPE_CHECKING:
    from trialwise.model.baseline import Baseline
    from trialwise.renderers.capabilities import Capabilities
    from trialwise.stores.baselines import BaselineStore


SCHEMA = "trialwise.baselines/1"
#: The widest last: an identifier alone may take half of a terminal.
_COLUMNS = ("state", "epoch", "created", "baseline", "age")


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

    def data(self) -> dict[str, Any]:
        """Return the baseline as plain values."""
        from trialwise.documents.printable import near

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
    def read(cls, store: BaselineStore, contract: str | None, *, now: datetime) -> Shelf:
        """Read what a store holds.

        Raises:
            BaselineError: A file is not as it was written.
        """
        found = store.all(contract)
        every = [baseline for _, baseline in found]
        return cls(
            [
                Entry(
                    path=path,
                    baseline=baseline,
                    in_force=_is_in_force(baseline, every),
                    validity=validity_of(baseline, now),
                )
                for path, baseline in found
            ],
            now,
        )

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
        for one in (by_name or of_contract)[-1:]:
            return one.path, one.baseline
        known = [one.baseline.identifier for one in self.entries if one.in_force]
        there = f"In force are {', '.join(known)}" if known else "Measure one: trialwise measure"
        raise BaselineError(f"no baseline {name!r}. {there}.")

    def data(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {"schema": SCHEMA, "baselines": [one.data() for one in self.entries]}


def validity_of(baseline: Baseline, now: datetime) -> str:
    """Return how long a baseline stays representative, in the bands of companion §8.4.2."""
    from trialwise.model.evidence import Severity
    from trialwise.procedures.guardrails import assess_baseline

    expires, grace_ends = baseline.expires_at, baseline.grace_ends_at
    if expires is None or grace_ends is None:
        return "no expiry"
    # Held against itself, a baseline can only be too old.
    guards = assess_baseline(
        baseline,
        scopes={},
        claim=baseline.claim,
        covariates=(),
        profile=baseline.covariates,
        factors=baseline.factors,
        now=now,
    )
    by_code = {guard.code: guard for guard in guards}
    if expired := by_code.get("expired"):
        if expired.severity is Severity.MINOR:
            return f"EXPIRED, grace ends in {_span(grace_ends - now)}"
        return f"EXPIRED {_span(now - expires)} ago"
    left = _span(expires - now)
    if expiring := by_code.get("expiring"):
        words = expiring.message.partition(":")[0].removeprefix("Baseline ")
        return f"{words}, in {left}"
    return f"expires in {left}"


def render_shelf(shelf: Shelf, able: Capabilities) -> str:
    """Render a table: a block a contract, a line a baseline, a line for each of its criteria."""
    from trialwise.renderers.capabilities import Style

    lines: list[str] = []
    for contract in dict.fromkeys(one.baseline.contract for one in shelf.entries):
        mine = [one for one in shelf.entries if one.baseline.contract == contract][::-1]
        lines += [""] if lines else []
        lines.append(able.paint(able.show(contract), Style.STRONG))
        rows = [_row(one, shelf.now) for one in mine]
        table = _align([_COLUMNS, *rows], able)
        lines.append(able.paint(f"  {table[0]}", Style.FAINT))
        for one, row in zip(mine, table[1:], strict=True):
            lines.append(f"  {row}")
            lines += [f"      {line}" for line in _align([*_counts(one.baseline)], able)]
    return "\n".join(lines)


def render_baseline(path: Path, baseline: Baseline, able: Capabilities, *, now: datetime) -> str:
    """One baseline, with everything that decides whether it is a reference."""
    from trialwise.documents.numbers import as_count, as_seconds
    from trialwise.documents.printable import near
    from trialwise.stats.latency_percentiles import nearest_rank_percentile

    facts = [
        ("contract", baseline.contract),
        ("identifier", baseline.identifier),
        ("file", near(path)),
        (
            "measured",
            f"{baseline.created_at:%Y-%m-%d %H:%M} UTC, {_span(now - baseline.created_at)} ago",
        ),
        ("validity", validity_of(baseline, now)),
        ("epoch", str(baseline.epoch)),
        ("claim", baseline.claim.population.value),
    ]
    facts += [(f"covariate {name}", value) for name, value in baseline.covariates.items()]
    facts += [(f"factor {name}", value) for name, value in baseline.factors.items()]
    facts += [
        (f"trials of {name}", as_count(trials, "trial"))
        for name, trials in baseline.run_trials.items()
    ]
    for name, latencies in baseline.latencies_s.items():
        if latencies:
            figures = [
                f"p{level} {as_seconds(nearest_rank_percentile(latencies, level / 100))}"
                for level in (50, 95)
            ]
            facts.append((f"latency of {name}", ", ".join(figures)))
    facts += [("run", baseline.run_id)] if baseline.run_id else []
    lines = _align(facts, able)
    lines += [
        "",
        *_align([("criterion", "rate", "passed", "failures by reason"), *_reasons(baseline)], able),
    ]
    return "\n".join(lines)


def _is_in_force(baseline: Baseline, every: Sequence[Baseline]) -> bool:
    """Return whether a run under its own conditions would be held against it."""
    from trialwise.procedures.selection import select_baseline

    chosen = select_baseline(every, contract=baseline.contract, profile=baseline.covariates)
    return chosen.baseline is baseline


def _row(entry: Entry, now: datetime) -> tuple[str, ...]:
    one = entry.baseline
    conditions = ", ".join(f"{name}={value}" for name, value in one.covariates.items())
    return (
        entry.state,
        str(one.epoch),
        f"{one.created_at:%Y-%m-%d}",
        f"{one.identifier} ({conditions})" if conditions else one.identifier,
        f"{_span(now - one.created_at)}, {entry.validity}",
    )


def _counts(baseline: Baseline) -> Iterator[tuple[str, ...]]:
    from trialwise.documents.numbers import as_observed

    for name, one in baseline.criteria.items():
        yield name, as_observed(one.rate), f"{one.passed:,} of {one.trials:,}"


def _reasons(baseline: Baseline) -> Iterator[tuple[str, ...]]:
    for (name, rate, count), one in zip(_counts(baseline), baseline.criteria.values(), strict=True):
        reasons = {"condition": one.condition, "transform": one.transform, "no value": one.no_value}
        listed = ", ".join(f"{reason} {count}" for reason, count in reasons.items() if count)
        yield name, rate, count, listed


def _span(span: timedelta) -> str:
    """Return a time between two dates, as coarse as somebody asks for it."""
    hours = span / timedelta(hours=1)
    if abs(hours) < 1:
        return f"{span / timedelta(minutes=1):.0f} min"
    return f"{hours:.0f} h" if abs(hours) < 48 else f"{hours / 24:.0f} days"


def _align(rows: Sequence[Sequence[str]], able: Capabilities) -> list[str]:
    from trialwise.documents.printable import count_cells, pad

    shown = [[able.show(cell) for cell in row] for row in rows]
    widths = [max(map(count_cells, column)) for column in zip(*shown, strict=True)]
    return [
        "  ".join(pad(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in shown
    ]


_folder = click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the baselines. Default: the suite's, else baselines/.",
)
_contract = click.option("--contract", help="Only this contract's.")


@click.group("baseline", no_args_is_help=True)
def command() -> None:
    """Look at and look after measured baselines.

    `trialwise measure` writes them; a criterion with `no_worse_than: baseline` is held against the
    newest that was measured under the same conditions. They are files to be kept in git.

    \b
    Examples:
      trialwise baseline list
      trialwise baseline promote artifacts/support-agent.json
    """


@command.command("list", short_help="List baselines: rates, age, which is in force.")
@_folder
@_contract
@json_option
def list_(folder: Path | None, contract: str | None, as_json: bool) -> int:
    """List baselines: their rates, their age, and which of them is in force.

    Of each contract and each set of conditions the newest is in force; the others are superseded.

    \b
    Example:
      trialwise baseline list --contract support-agent
    """
    from trialwise.cli.printing import output_of, say, say_json

    shelf = Shelf.read(_store(folder), contract, now=_now())
    if as_json:
        say_json(shelf.data())
    elif shelf.entries:
        say(render_shelf(shelf, output_of()))
    else:
        whose = "" if contract is None else f" of {contract!r}"
        where = _where(folder)
        click.echo(f"{where}: no baseline{whose}. Measure one: trialwise measure", err=True)
    return ExitCode.PASS


@command.command()
@click.argument("name")
@_folder
@_contract
@json_option
def show(name: str, folder: Path | None, contract: str | None, as_json: bool) -> int:
    """Show one baseline: counts, conditions, validity.

    NAME is an identifier, a file, or a contract, of which the newest baseline is meant. --json
    prints the file as it is kept.

    \b
    Examples:
      trialwise baseline show support-agent
      trialwise baseline show baselines/support-agent/nightly.json --json
    """
    from trialwise.cli.printing import output_of, say, say_json

    store = _store(folder)
    shelf = Shelf.read(store, contract, now=_now()) if not Path(name).is_file() else None
    path, found = (Path(name), store.load(Path(name))) if shelf is None else shelf.find(name)
    if as_json:
        say_json(path.read_text(encoding="utf-8"))
    else:
        say(render_baseline(path, found, output_of(), now=_now()))
    return ExitCode.PASS


@command.command(short_help="Take a baseline from elsewhere.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@_folder
@json_option
def promote(file: Path, folder: Path | None, as_json: bool) -> int:
    """Take a baseline from elsewhere, such as a build's artefact, into this project.

    The file is checked, copied and given the next epoch. Promoting one that is there already
    changes nothing.

    \b
    Example:
      trialwise baseline promote artifacts/support-agent.json
    """
    from trialwise.cli.printing import say, say_json
    from trialwise.documents.printable import near

    store = _store(folder)
    path = store.promote(file)
    shelf = Shelf.read(store, None, now=_now())
    kept = next(one for one in shelf.entries if one.path == path)
    one = kept.baseline
    if as_json:
        say_json(kept.data())
        return ExitCode.PASS
    say(f"{one.contract}: {one.identifier} (epoch {one.epoch}) is {kept.state}, in {near(path)}")
    return ExitCode.PASS


@command.command(short_help="Delete all but the newest few.")
@click.option(
    "--keep", type=click.IntRange(1), required=True, help="How many to keep of each index."
)
@click.option("--yes", is_flag=True, help="Delete them; without it they are only listed.")
@_folder
@_contract
@json_option
def prune(keep: int, yes: bool, folder: Path | None, contract: str | None, as_json: bool) -> int:
    """Delete all but the newest few baselines of each contract and set of conditions.

    Without --yes nothing is deleted. A stored verdict keeps the counts it was decided against.

    \b
    Example:
      trialwise baseline prune --keep 3 --yes
    """
    from trialwise.cli.printing import say, say_json
    from trialwise.documents.printable import near

    store = _store(folder)
    old = (store.prune if yes else store.list_old)(keep, contract=contract)
    if as_json:
        say_json({"deleted": yes, "files": [near(path) for path in old]})
        return ExitCode.PASS
    for path in old:
        say(f"{'deleted' if yes else 'would delete'} {near(path)}")
    if not old:
        click.echo("nothing to delete", err=True)
    elif not yes:
        click.echo("nothing was deleted; add --yes to delete them", err=True)
    return ExitCode.PASS


def _store(folder: Path | None) -> BaselineStore:
    from trialwise.stores.baselines import BaselineStore

    return BaselineStore(_where(folder))


def _where(folder: Path | None) -> Path:
    if folder is not None:
        return folder
    from trialwise.cli.stored import find_places

    return find_places().baselines


def _now() -> Any:
    from datetime import UTC, datetime

    return datetime.now(UTC)
