"""Baselines of a run: which one it is compared with, and what its gates and factors take of it."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from trialwise.errors import BaselineError, DesignRefused, InvalidArgument
from trialwise.model import Analysis, Contract, Plan
from trialwise.model.baseline import Baseline, BaselineReference, GateBaseline
from trialwise.model.criterion import CriterionScope
from trialwise.model.evidence import Guard
from trialwise.model.fingerprint import fingerprint
from trialwise.model.gate import Expectation, Gate
from trialwise.model.matcher import fill_number, needs_number
from trialwise.model.run import Trials
from trialwise.procedures.gates import measure_gate
from trialwise.procedures.guardrails import admit, assess_baseline
from trialwise.procedures.selection import reference_of, select_baseline
from trialwise.redaction import format_seal, redact_text, redact_with
from trialwise.stores.baselines import BaselineStore

if TYPE_CHECKING:
    from datetime import datetime

    from trialwise.model.criterion import Criterion
    from trialwise.model.options import RunOptions
    from trialwise.procedures.selection import Selected


Kept: TypeAlias = Sequence[tuple[Path | None, Baseline]]
"""Baselines of a contract, with the files that hold them."""


class Baselines(NamedTuple):
    """The baseline that a run is compared with, and what is wrong with that."""

    baseline: Baseline | None = None
    references: Mapping[str, BaselineReference] = MappingProxyType({})
    """What each criterion of the baseline contributes under the conditions of the run."""
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True, slots=True)
class BaselineSearch:
    """Finds the baseline of a run, by the conditions that the run is made under."""

    contract: Contract
    """With the factors of its service; its criteria with `no_worse_than` are compared."""
    scopes: Mapping[str, CriterionScope]
    """What each criterion is asked of."""
    profile: Mapping[str, str]
    """The values that the contract's conditions have in this run."""
    options: RunOptions
    now: datetime
    """When the run starts."""

    def find(self, folder: Path, given: Baseline | None = None) -> Baselines:
        """Find the baseline that a run is compared with; none where nothing is compared.

        Args:
            folder: The baselines of all contracts.
            given: The baseline to compare with, where the caller has it.
        """
        contract = self.contract
        limits = () if contract.latency is None else contract.latency.constraints
        expected = (one.matcher for gate in contract.gates for one in gate.expect)
        is_needed = any(map(_is_compared, contract.criteria)) or any(map(needs_number, expected))
        if not is_needed and all(one.limit_s is not None for one in limits):
            return Baselines()
        return self._choose(self._read(folder) if given is None else [(None, given)])

    def find_contexts(self, found: Baselines, folder: Path) -> dict[str, BaselineReference]:
        """Find what was measured of the criteria that a baseline does not decide (§1.5.4).

        It is context and nothing else, so that a baseline that cannot be read is left out.

        Args:
            found: The baseline that decides other criteria, where there is one.
            folder: The baselines of all contracts.
        """
        others = [one.name for one in self.contract.criteria if not _is_compared(one)]
        if not others or not folder.is_dir():
            return {}
        chosen, references = found.baseline, found.references
        if chosen is None:
            try:
                kept = BaselineStore(folder).all(self.contract.name)
                chosen = self._select(kept).baseline
            except BaselineError:
                return {}
            references = self._refer(chosen, kept)
        known = chosen.criteria
        return {
            name: one
            for name, one in references.items()
            if name in others and known[name].structure == self.scopes[name].structure
        }

    def _read(self, folder: Path) -> list[tuple[Path, Baseline]]:
        """Read the baselines; one that does not say how long it is valid is so as declared."""
        validity = self.contract.validity
        kept: list[tuple[Path, Baseline]] = []
        for path, stored in BaselineStore(folder).all(self.contract.name):
            one = seal_stored(stored)
            if validity is not None and one.valid_days is None:
                one = replace(one, valid_days=validity.days, grace_days=validity.grace_days)
            kept.append((path, one))
        return kept

    def _choose(self, kept: Kept) -> Baselines:
        """Select a baseline by its index, and admit it or refuse the run (§8.4.5)."""
        contract, options = self.contract, self.options
        compared = [one for one in contract.criteria if _is_compared(one)]
        selected = self._select(kept, options.baseline or _named_baseline(compared))
        guards = assess_baseline(
            selected.baseline,
            scopes={one.name: self.scopes[one.name] for one in compared},
            claim=contract.claim,
            covariates=contract.covariates,
            profile=self.profile,
            factors=contract.factors,
            critical=contract.critical_factors,
            now=self.now,
            analyses={one.name: Analysis(one.analysis or options.analysis) for one in compared},
        )
        admitted = admit(
            (*guards, *selected.warnings),
            intent=options.intent,
            overrides=options.overrides,
            smoke_refuses=options.smoke_refuses,
        )
        return Baselines(selected.baseline, self._refer(selected.baseline, kept), admitted)

    def _select(self, kept: Kept, identifier: str | None = None) -> Selected:
        return select_baseline(
            [one for _, one in kept],
            contract=self.contract.name,
            profile=self.profile,
            covariates=self.contract.covariates,
            identifier=identifier,
        )

    def _refer(self, chosen: Baseline, kept: Kept) -> dict[str, BaselineReference]:
        path = next(path for path, one in kept if one is chosen)
        file = "" if path is None else str(path)
        return {
            name: reference_of(chosen, name, self.profile, file=file, now=self.now)
            for name in chosen.criteria
        }


def _is_compared(criterion: Criterion) -> bool:
    """Return whether a criterion is decided against a baseline."""
    return criterion.no_worse_than is not None and not criterion.report_only


def _named_baseline(criteria: Sequence[Criterion]) -> str | None:
    """Return the one baseline that criteria name, if they name any: a run has one reference."""
    named = sorted({str(one.no_worse_than) for one in criteria} - {"baseline"})
    if len(named) > 1:
        allowed = "name one baseline for all criteria of a contract"
        raise InvalidArgument("no_worse_than", named, allowed)
    return named[0] if named else None


# Gates against a baseline: what a measurement keeps of them, and the limits that a run gets.
#
# A gate has no error rate, and its number differs from run to run: a margin says by how much.

#: Settings that change what is asked or shown, and not the numbers.
_ASIDE = frozenset({"expect", "confidence", "half_width", "k", "sampling"})


def measure_gates(contract: Contract, plan: Plan, trials: Trials) -> dict[str, GateBaseline]:
    """Return what a baseline keeps of the gates of a contract, by name.

    Args:
        contract: The contract.
        plan: What was run.
        trials: All of its trials.
    """
    return {
        gate.name: GateBaseline(structure=_structure_of(gate), numbers=numbers)
        for gate in contract.gates
        if (numbers := measure_gate(gate, plan, trials, contract.gate_experiments(gate)))
    }


def fill_gates(
    contract: Contract, baseline: Baseline, scopes: Mapping[str, CriterionScope]
) -> Contract:
    """Return a contract whose gates compare with the numbers of a baseline.

    Args:
        contract: The contract.
        baseline: The baseline.
        scopes: What each criterion is asked of.

    Raises:
        DesignRefused: The baseline does not hold a number, or holds another one.
    """
    reasons: list[str] = []
    filled: dict[str, Any] = {}
    for gate in contract.gates:
        if not any(needs_number(one.matcher) for one in gate.expect):
            continue
        if reason := _find_misfit(gate, contract, baseline, scopes):
            again = "measure a new baseline with this suite"
            reasons.append(f"{gate.name}: {baseline.identifier} {reason}: {again}")
        else:
            numbers = baseline.gates[gate.name].numbers
            expect = tuple(_fill(one, numbers, baseline.identifier) for one in gate.expect)
            filled[gate.name] = replace(gate, expect=expect)
    if reasons:
        raise DesignRefused(tuple(reasons))
    return replace(contract, **filled)


def _find_misfit(
    gate: Gate, contract: Contract, baseline: Baseline, scopes: Mapping[str, CriterionScope]
) -> str:
    """Return why a baseline's numbers do not fit a gate; nothing where they do."""
    known = baseline.gates.get(gate.name)
    held = () if known is None else known.numbers
    asked = [one.target for one in gate.expect if needs_number(one.matcher)]
    if known is None or not set(asked) <= set(held):
        return f"holds no {', '.join(one for one in asked if one not in held)}"
    # Other weights or floors give another number to the same runs, and the two would be compared as
    # if they were one.
    if known.structure != _structure_of(gate):
        return "was measured with other settings of this gate, and its numbers mean something else"
    mine = contract.gate_experiments(gate)
    is_other = any(
        baseline.criteria[one.name].sampling_fingerprint != scopes[one.name].sampling_fingerprint
        for one in contract.criteria
        if contract.experiment_of(one) in mine and one.name in baseline.criteria
    )
    return "was measured on other inputs" if is_other else ""


def _fill(one: Expectation, numbers: Mapping[str, float], identifier: str) -> Expectation:
    if not needs_number(one.matcher):
        return one
    lower = one.is_of.lower_is_better
    matcher = fill_number(one.matcher, numbers[one.target], identifier, lower_is_better=lower)
    return Expectation(target=one.target, matcher=matcher)


def _structure_of(gate: Gate) -> str:
    settings = {one.name: getattr(gate, one.name) for one in fields(gate)}
    if "floors" in settings:
        settings["floors"] = repr(settings["floors"])
    plain = {
        name: dict(value) if isinstance(value, Mapping) else value
        for name, value in settings.items()
        if name not in _ASIDE
    }
    return fingerprint(plain)[:16]


# The factors of a run: what its contract and its service say of themselves, without secrets.
#
# A value of the environment is shown as `${NAME}`, as in a reply. So that a change of it is noticed
# all the same, a factor that held one ends with a seal: a hash of the whole factor under a key. The
# key is in no file of a run. It is `$TRIALWISE_KEY`, or else 32 random bytes in the folder of the
# user's settings. Without the key nobody can find the value by trying values out.


def with_service_factors(contract: Contract) -> Contract:
    """Return the contract with what its service says of itself; what the contract declares wins.

    A service may have a property `factors`, a mapping of text to text. Secrets are taken out by the
    redaction that is in force.
    """
    shown = _read_factors(contract)
    with redact_with(None):
        whole = _read_factors(contract)
    return replace(contract, factors={name: _seal(shown[name], whole[name]) for name in whole})


def seal_stored(baseline: Baseline) -> Baseline:
    """Return a baseline with its factors as they are sealed now.

    Versions before 0.2 kept values of the environment in clear.
    """
    factors = {name: _seal(redact_text(one), one) for name, one in baseline.factors.items()}
    return replace(baseline, factors=factors)


def _read_factors(contract: Contract) -> dict[str, str]:
    told = getattr(contract.service, "factors", None)
    known = {**(told if isinstance(told, Mapping) else {}), **contract.factors}
    return {str(name): redact_text(str(value)) for name, value in known.items()}


def _seal(shown: str, whole: str) -> str:
    if shown == whole:
        return shown
    key = _find_seal_key(os.environ.get("TRIALWISE_KEY"), os.environ.get("XDG_CONFIG_HOME"))
    return format_seal(shown, _hash(key, "key")[:8], _hash(key, f"factor {whole}")[:16])


def _hash(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), "sha256").hexdigest()


@cache
def _find_seal_key(given: str | None, settings: str | None) -> bytes:
    """Return the key of this user, which is made when it is first needed.

    Args:
        given: The text to make it from, if there is one.
        settings: The folder of the user's settings, where it is not the usual one.
    """
    if given:
        # Slow on purpose: a text that somebody chose can be guessed.
        return hashlib.scrypt(given.encode(), salt=b"trialwise seal", n=2**14, r=8, p=1, dklen=32)
    fresh = secrets.token_bytes(32)
    try:
        folder = Path(settings or Path.home() / ".config", "trialwise")
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"key.{secrets.token_hex(8)}"
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(fresh)
        try:
            # Of several processes that start at once one makes the key, and all use that.
            with suppress(FileExistsError):
                os.link(part, folder / "key")
        finally:
            part.unlink()
        return (folder / "key").read_bytes()
    except (OSError, RuntimeError):
        # No home to keep it in: what is sealed with it can be compared within this process only.
        return fresh
