"""What `trialwise show --verify` finds out about stored runs, and how it says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trialwise.model.run import RunRecord
    from trialwise.renderers.capabilities import Capabilities
    from trialwise.runtime.verifying import Verification
    from trialwise.stores.runs import StoredRun

__all__ = ["Checked", "check_runs", "render_checked"]

SCHEMA = "trialwise.verification/1"
#: Beyond these one cause is seen many times.
_MOST_DIFFERENCES = 20


@dataclass(frozen=True, slots=True)
class Checked:
    """Stored runs, decided again."""

    records: Sequence[RunRecord]
    """Those that could be read whole."""
    verifications: Sequence[Verification]
    damages: Sequence[tuple[str, str]]
    """The names of the others, and what is wrong with them."""

    @property
    def holds(self) -> bool:
        """Whether every record says what follows from it."""
        return not self.damages and all(one.matches for one in self.verifications)

    def data(self) -> dict[str, Any]:
        """Everything as plain values."""
        runs: list[dict[str, Any]] = [
            {
                "run_id": one.run_id,
                "contract": one.contract,
                "matches": one.matches,
                "trials": one.trials,
                "tool_version": one.tool_version,
                "damage": None,
                "differences": [
                    {"path": each.path, "stored": each.stored, "derived": each.derived}
                    for each in one.differences
                ],
            }
            for one in self.verifications
        ]
        runs += [{"run_id": name, "matches": False, "damage": why} for name, why in self.damages]
        return {"schema": SCHEMA, "matches": self.holds, "runs": runs}


def check_runs(stored: Sequence[StoredRun]) -> Checked:
    """Decide runs again; one that is not as it was written does not hold.

    Raises:
        RunNotFound: One of them has no verdict yet.
    """
    from trialwise.errors import JournalDamaged
    from trialwise.runtime.verifying import verify
    from trialwise.stores.runs import StoreUnusable

    records, verifications, damages = [], [], []
    for one in stored:
        try:
            record = one.record()
            verifications.append(verify(record, known_hash=one.plan_hash))
            records.append(record)
        except (JournalDamaged, StoreUnusable) as error:
            damages.append((one.run_id, str(error)))
    return Checked(records, verifications, damages)


def render_checked(checked: Checked, able: Capabilities) -> str:
    """The outcome as text: a line a run, and what differs."""
    from trialwise.renderers.capabilities import Style

    lines: list[str] = []
    for one in checked.verifications:
        name = able.show(one.run_id or one.contract)
        if one.matches:
            mark = able.paint("VERIFIED", Style.GOOD)
            what = f"the verdict follows from the plan and its {one.trials} trials"
            lines.append(f"{mark}  {name}: {what}")
            continue
        mark = able.paint("DIFFERS", Style.BAD)
        lines.append(f"{mark}  {name}: the record does not say what follows from it")
        shown = one.differences[:_MOST_DIFFERENCES]
        lines += [f"  {able.show(str(difference))}" for difference in shown]
        if len(one.differences) > len(shown):
            lines.append(f"  and {len(one.differences) - len(shown)} more")
    for name, why in checked.damages:
        lines.append(f"{able.paint('DAMAGED', Style.BAD)}  {able.show(name)}: {able.show(why)}")
    return "\n".join(lines)
