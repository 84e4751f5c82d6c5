"""A judge in a suite: its keys, and how it is built with its jurors."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trialwise.declarations.quantities import Duration
from trialwise.declarations.scalars import Count, Flag, Scalar, Schema, Text, is_number
from trialwise.declarations.structures import Either, Fields, Key, Listing
from trialwise.declarations.written import INVALID, Invalid
from trialwise.errors import InvalidArgument, TrialwiseError
from trialwise.suite.reading_context import Context
from trialwise.suite.suite_services import SERVICE, build_service, service_label
from trialwise.suite.yaml_reading import plain

if TYPE_CHECKING:
    from trialwise.judges.gold import GoldSet
    from trialwise.judges.preference import PairGold

_SHARE = r"majority|[0-9]{1,6}\s*/\s*[0-9]{1,6}|[0-9]{1,9}(?:\.[0-9]{1,17})?%?"
_PATH = Text("a path", environment="read")
_SAME = (
    "votes",
    "quorum",
    "shows_input",
    "shows_expected",
    "output_limit",
    "labels_count_as_trials",
    "retries",
    "name",
)


class _Quorum(Scalar):
    """The share of votes that have to pass, exactly."""

    expected = "`majority`, or a share of the votes such as 2/3 or 75%"
    spelled = "quorum"

    def convert(self, value: Any) -> Any:
        """Return the share as it was written, because a decimal cannot express a third."""
        from trialwise.judges.votes import quorum_of

        text = str(value).strip() if is_number(value) or isinstance(value, str) else ""
        if not re.fullmatch(_SHARE, text):
            return None
        text = re.sub(r"\s", "", text)
        try:
            quorum_of(text)
        except InvalidArgument:
            return None
        return text

    def spellings(self) -> list[Schema]:
        """Return a word, a fraction, a percentage or a number."""
        return [
            {"type": "string", "pattern": rf"^\s*(?:{_SHARE})\s*$", "examples": ["2/3"]},
            {"type": "number", "minimum": 0, "maximum": 1},
        ]


JUDGE_KEYS = (
    Key("rubric", Text(environment="kept"), "What a reply must meet completely, in words."),
    Key(
        "jurors",
        Either(
            "a service or a list of services",
            mapping=SERVICE,
            listing=Listing(SERVICE, "a list of services"),
        ),
        "The models to ask: any service that answers a conversation, such as a `chat` model.",
    ),
    Key(
        "votes",
        Count(),
        "The number of votes. Jurors are asked in turn.",
        default="one of each juror",
    ),
    Key(
        "quorum",
        _Quorum(),
        "The share of votes that must pass. A `majority` is more than half, so a tie fails; with "
        "`1/2` a tie passes. Write `2/3`, because 0.67 is more than two of three.",
        default="majority",
    ),
    Key(
        "gold",
        _PATH,
        "The gold set: outputs that people labelled. Without it the judge is advisory.",
    ),
    Key(
        "calibration",
        _PATH,
        "The file with the result of `trialwise judge calibrate`.",
        default="beside the gold set",
    ),
    Key(
        "labels_count_as_trials",
        Flag(),
        "Whether the labelled outputs are those of the service as it is now, drawn like the "
        "trials. The labels are then evidence for the rate, beside the trials.",
        default="false",
    ),
    Key("cache", _PATH, "A folder for answers, so that you pay for the same question only once."),
    Key("shows_input", Flag(), "Whether jurors see the input.", default="true"),
    Key(
        "shows_expected",
        Flag(),
        "Whether jurors see `expected` of the input as the reference. Every input and every entry "
        "of the gold set then needs it.",
        default="false",
    ),
    Key(
        "output_limit", Count(), "How many characters of the reply the jurors see.", default="10000"
    ),
    Key("timeout", Duration(), "Time limit for one question.", default="60s"),
    Key("retries", Count(0), "Number of further attempts after a failed one.", default="1"),
    Key("name", Text(), "The name in reports."),
)


_JUDGE = {key.name: key for key in JUDGE_KEYS}
PREFERENCE_KEYS = (
    Key(
        "rubric",
        Text(environment="kept"),
        "What makes one reply better than another, in words.",
    ),
    Key("juror", SERVICE, "The model to ask, in both orders of the two replies."),
    Key(
        "gold",
        _PATH,
        "Pairs of outputs with what people prefer. Without it the preference is advisory.",
    ),
    *(_JUDGE[name] for name in ("calibration", "cache", "output_limit", "timeout", "retries")),
    Key("name", Text(), "The name of the criterion in reports.", default="preference"),
)


def build_preference(fields: Any, context: Context) -> Any:
    """Build the judge of a comparison's replies; None where there is none or it has a problem."""
    if not isinstance(fields, Fields):
        return None
    from trialwise.judges.jurors import VoteCache
    from trialwise.judges.preference import pairwise, read_pair_gold

    juror = _juror(fields["juror"], context)
    measured = _read_measured(fields, context, read_pair_gold)
    if juror is INVALID or isinstance(measured, Invalid):
        return None
    options = fields.given("name", "output_limit", "retries") | measured
    if "timeout" in fields:
        options["timeout_s"] = fields["timeout"]
    if "cache" in fields:
        options["cache"] = VoteCache(context.file(fields["cache"]))
    try:
        return pairwise(fields["rubric"], juror, **options)
    except InvalidArgument as error:
        context.refuse(fields.at(error.argument), f"`{error.argument}` must {error.allowed}")
        return None


def build_judge(fields: Fields, context: Context) -> Any:
    """Build the judge, or `INVALID` once its problems are reported."""
    from trialwise.judges.gold import read_gold
    from trialwise.judges.jurors import VoteCache
    from trialwise.judges.rubric import judge

    given = fields["jurors"]
    jurors = [_juror(one, context) for one in (given if isinstance(given, list) else [given])]

    def read(path: Path) -> GoldSet:
        return read_gold(path, needs_expected=fields.get("shows_expected", False))

    measured = _read_measured(fields, context, read)
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
    """Return a service as a juror, named by what is written about it."""
    from trialwise.judges.jurors import Juror
    from trialwise.model.fingerprint import fingerprint

    service = build_service(fields, context, needed=True)
    if isinstance(service, Invalid):
        return INVALID
    return Juror(service, f"{service_label(fields)}#{fingerprint(plain(fields.node))[:8]}")


def _read_measured(
    fields: Fields, context: Context, read: Callable[[Path], GoldSet | PairGold]
) -> dict[str, Any] | Invalid:
    """Read the files of a judge's calibration, and the calibration where there is one."""
    if "gold" not in fields:
        for key in ("calibration", "labels_count_as_trials"):
            if key in fields:
                message = f"`{key}` goes with `gold`, the gold set that the judge is measured by"
                return context.refuse(fields.keys[key], message)
        return {}
    from trialwise.judges.calibration import GoldFiles, read_calibration

    files = GoldFiles.beside(context.file(fields["gold"]))
    if "calibration" in fields:
        files = GoldFiles(files.gold, context.file(fields["calibration"]))
    at = "gold"
    try:
        gold = read(files.gold)
        if not files.calibration.exists():
            return {"files": files}
        at = "calibration"
        calibration = read_calibration(files.calibration, gold=gold.fingerprint)
    except TrialwiseError as error:
        return context.refuse(fields.at(at), str(error))
    return {"files": files, "calibration": calibration}
