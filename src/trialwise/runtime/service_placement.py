"""The service of a contract, and the one place that decides where a function runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trialwise.engine.ports import Service
from trialwise.model.contract import Contract
from trialwise.model.options import RunOptions

if TYPE_CHECKING:
    pass

__all__ = ["open_service"]


def open_service(contract: Contract, options: RunOptions) -> Service:
    """The contract's service; a function becomes one.

    A sync function is called in place where nothing else has to happen meanwhile, since a thread
    would take three times as long as the engine does. It runs in threads where several trials run
    side by side, or where a time limit may have to give one up. A `CallableService` that says where
    it runs is left as it is.

    Args:
        contract: Whose service it is, given in Python or in a suite.
        options: How the run is made.
    """
    given = contract.service
    in_thread = options.concurrency > 1 or options.timeout_s is not None
    if callable(getattr(given, "call", None)) and callable(getattr(given, "aclose", None)):
        place = getattr(given, "placed", None)
        service: Service = place(in_thread=in_thread) if callable(place) else given
        return service
    from trialwise.services import CallableService

    return CallableService(given, in_thread=in_thread)
