"""Judges as a suite describes them, with their gold sets read before the first trial."""

from __future__ import annotations

from typing import Any

from trialwise.declarations.structures import Fields
from trialwise.declarations.written import INVALID, Invalid
from trialwise.errors import InvalidArgument, TrialwiseError
from trialwise.suite.nodes import plain
from trialwise.suite.reading_context import Context
from trialwise.suite.service_building import build_service, service_label

__all__ = ["build_judge"]

_SAME = ("votes", "quorum", "shows_input", "shows_expected", "output_limit", "retries", "name")


def build_judge(fields: Fields, context: Context) -> Any:
    """The judge, or `INVALID` once its problems are reported."""
    from trialwise.judges.cache import VoteCache
    from trialwise.judges.rubric import judge

    given = fields["jurors"]
    jurors = [_juror(one, context) for one in (given if isinstance(given, list) else [given])]
    measured = _read_measured(fields, context)
    if INVALID in jurors or isinstance(measured, Invalid) or not jurors:
        return INVALID
    options = fields.given(*_SAME) | measured
    if "timeout" in fields:
        options["timeout_s"] = fields["timeout"]
    if "cache" in fields:
        options["cache"] = VoteCache(context.file(fields["cache"]))
    try:
        return judge(fields["rubric"], *jurors, **options)
    except InvalidArgument as error:
        return context.refuse(fields.at(error.argument), f"`{error.argument}` must {error.allowed}")


def _juror(fields: Fields, context: Context) -> Any:
    """A service as a juror, called by what is written: another temperature is another juror."""
    from trialwise.judges.jurors import Juror
    from trialwise.model.fingerprint import fingerprint

    service = build_service(fields, context, needed=True)
    if isinstance(service, Invalid):
        return INVALID
    return Juror(service, f"{service_label(fields)}#{fingerprint(plain(fields.node))[:8]}")


def _read_measured(fields: Fields, context: Context) -> dict[str, Any] | Invalid:
    """The files of a judge's calibration, and the calibration where there is one."""
    if "gold" not in fields:
        if "calibration" in fields:
            message = "`calibration` goes with `gold`, the gold set it was measured by"
            return context.refuse(fields.keys["calibration"], message)
        return {}
    from trialwise.judges.calibration import GoldFiles, read_calibration
    from trialwise.judges.gold import read_gold

    files = GoldFiles.beside(context.file(fields["gold"]))
    if "calibration" in fields:
        files = GoldFiles(files.gold, context.file(fields["calibration"]))
    at = "gold"
    try:
        gold = read_gold(files.gold, needs_expected=fields.get("shows_expected", False))
        if not files.calibration.exists():
            return {"files": files}
        at = "calibration"
        calibration = read_calibration(files.calibration, gold=gold.fingerprint)
    except TrialwiseError as error:
        return context.refuse(fields.at(at), str(error))
    return {"files": files, "calibration": calibration}
