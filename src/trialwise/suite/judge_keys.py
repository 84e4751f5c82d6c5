"""The keys of a judge: a rubric, who is asked, and how their votes are counted."""

from __future__ import annotations

import re
from typing import Any

from trialwise.declarations.quantities import Duration
from trialwise.declarations.scalars import Count, Flag, Scalar, Schema, Text, is_number
from trialwise.declarations.structures import Either, Key, Listing
from trialwise.suite.service_keys import SERVICE

__all__ = ["JUDGE_KEYS"]

_SHARE = r"majority|[0-9]{1,6}\s*/\s*[0-9]{1,6}|[0-9]{1,9}(?:\.[0-9]{1,17})?%?"
_PATH = Text("a path", environment="read")


class _Quorum(Scalar):
    """The share of votes that have to pass, exactly."""

    expected = "`majority`, or a share of the votes such as 2/3 or 75%"
    spelled = "quorum"

    def convert(self, value: Any) -> Any:
        """The share as it is written: a decimal would not be a third."""
        from trialwise.errors import InvalidArgument
        from trialwise.judges.panel import quorum_of

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
        """A word, a fraction, a percentage or a number."""
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
