"""Gates against a baseline: what a measurement keeps of them, and the limits that a run gets.

A gate has no error rate, and its number differs from run to run: a margin says by how much.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trialwise.errors import DesignRefused
from trialwise.model.baseline import Baseline, CriterionScope, GateBaseline
from trialwise.model.contract import Contract
from trialwise.model.gate import Expectation, Gate
from trialwise.model.matcher import fill_number, needs_number
from trialwise.model.plan import Plan
from trialwise.model.run import Trials

#: Settings that change what is asked or shown, and not the numbers.
_ASIDE = frozenset({"expect", "confidence", "half_width", "k", "sampling"})


def compares_gates(contract: Contract) -> bool:
    """Return whether a gate of a contract is compared with a baseline."""
    return any(needs_number(one.matcher) for gate in contract.gates for one in gate.expect)


def measure_gates(contract: Contract, plan: Plan, trials: Trials) -> dict[str, GateBaseline]:
    """Return what a baseline keeps of the gates of a contract, by name.

    Args:
        contract: The contract.
        plan: What was run.
        trials: All of its trials.
    """
    from trialwise.procedures.gates import measure_gate

    found: dict[str, GateBaseline] = {}
    for gate in contract.gates:
        numbers = measure_gate(gate, plan, trials, contract.gate_experiments(gate))
        if numbers:
            found[gate.name] = GateBaseline(structure=_structure_of(gate), numbers=numbers)
    return found


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
        filled[gate.name] = _fill_gate(gate, contract, baseline, scopes, reasons)
    if reasons:
        raise DesignRefused(tuple(reasons))
    return replace(contract, **filled)


def _fill_gate(
    gate: Gate,
    contract: Contract,
    baseline: Baseline,
    scopes: Mapping[str, CriterionScope],
    reasons: list[str],
) -> Gate:
    asked = [one.target for one in gate.expect if needs_number(one.matcher)]
    if not asked:
        return gate
    known = baseline.gates.get(gate.name)
    again = "measure a new baseline with this suite"
    if known is None or not set(asked) <= set(known.numbers):
        held = () if known is None else known.numbers
        missing = ", ".join(one for one in asked if one not in held)
        reasons.append(f"{gate.name}: {baseline.identifier} holds no {missing}: {again}")
        return gate
    if known.structure != _structure_of(gate):
        reasons.append(
            f"{gate.name}: {baseline.identifier} was measured with other settings of this gate, "
            f"and its numbers mean something else: {again}"
        )
        return gate
    if _has_other_inputs(gate, contract, baseline, scopes):
        reasons.append(f"{gate.name}: {baseline.identifier} was measured on other inputs: {again}")
        return gate
    expect = tuple(_fill(one, known.numbers, baseline.identifier) for one in gate.expect)
    return replace(gate, expect=expect)


def _fill(one: Expectation, numbers: Mapping[str, float], identifier: str) -> Expectation:
    if not needs_number(one.matcher):
        return one
    matcher = fill_number(
        one.matcher,
        numbers[one.target],
        identifier,
        lower_is_better=one.is_of.lower_is_better,
    )
    return Expectation(target=one.target, matcher=matcher)


def _has_other_inputs(
    gate: Gate, contract: Contract, baseline: Baseline, scopes: Mapping[str, CriterionScope]
) -> bool:
    mine = contract.gate_experiments(gate)
    return any(
        baseline.criteria[one.name].sampling_fingerprint != scopes[one.name].sampling_fingerprint
        for one in contract.criteria
        if contract.experiment_of(one) in mine and one.name in baseline.criteria
    )


def _structure_of(gate: Gate) -> str:
    from dataclasses import fields

    from trialwise.model.fingerprint import fingerprint

    settings = {one.name: getattr(gate, one.name) for one in fields(gate)}
    if "floors" in settings:
        settings["floors"] = repr(settings["floors"])
    plain = {
        name: dict(value) if isinstance(value, Mapping) else value
        for name, value in settings.items()
        if name not in _ASIDE
    }
    return fingerprint(plain)[:16]
