"""Runs whose replies are recorded, or taken from a recording."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trialwise.errors import TrialwiseError
from trialwise.runtime.preparing import PreparedRun
from trialwise.runtime.service_placement import open_service

__all__ = ["RecordingRefused", "record_replies", "replay_replies"]


class RecordingRefused(TrialwiseError):
    """A recording has nothing to play, or would hold the replies of two runs."""


def replay_replies(prepared: Sequence[PreparedRun], file: Path) -> list[PreparedRun]:
    """The runs with a recording in place of their services.

    Raises:
        RecordingRefused: The recording holds no reply of a contract.
    """
    from trialwise.services import ReplayService

    replayed = []
    for one in prepared:
        replay = ReplayService(file, contract=one.contract.name)
        if not len(replay):
            raise RecordingRefused(f"{file} holds no reply of {one.contract.name}")
        replayed.append(one._replace(contract=one.contract.with_service(replay)))
    return replayed


def record_replies(prepared: Sequence[PreparedRun], file: Path) -> list[PreparedRun]:
    """The runs with every reply written to a file.

    Raises:
        RecordingRefused: The file holds replies of an earlier run of a contract.
    """
    from trialwise.services import RecordingService, ReplayService

    recorded = []
    for one in prepared:
        name = one.contract.name
        # A resumed run adds to its own recording.
        count = len(ReplayService(file, contract=name)) if file.exists() else 0
        if count and one.stored is None and one.finished is None:
            raise RecordingRefused(
                f"{file} holds {count} replies of {name} from another run, and --replay "
                "could not tell them apart: remove it, or name another file"
            )
        service = open_service(one.contract, one.plan.options)
        recording = RecordingService(service, file, contract=name)
        recorded.append(one._replace(contract=one.contract.with_service(recording)))
    return recorded
