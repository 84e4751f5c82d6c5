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

    def written(self) -> list[Schema]:
        """A word, a fraction, a percentage or a number."""
        return [
            {"type": "string", "pattern": rf"^\s*(?:{_SHARE})\s*$", "examples": ["2/3"]},
            {"type": "number", "minimum": 0, "maximum": 1},
        ]


JUDGE_KEYS = (
    Key("rubric", Text(environment="kept"), "What a reply has to meet, in words; all of it."),
    Key(
        "jurors",
        Either(
            "a service or a list of services",
            mapping=SERVICE,
            listing=Listing(SERVICE, "a list of services"),
        ),
        "Who is asked: any service that answers a conversation, such as a `chat` model.",
    ),
    Key("votes", Count(), "How many, of the jurors in turn.", default="one of each juror"),
    Key(
        "quorum",
        _Quorum(),
        "The share that has to pass. A `majority` is more than half: a tie fails; `1/2` lets it "
        "pass. Write `2/3`: 0.67 is more than two of three.",
        default="majority",
    ),
    Key("gold", _PATH, "The gold set: outputs that people labelled. Without one it only advises."),
    Key(
        "calibration",
        _PATH,
        "What `trialwise judge calibrate` measured by the gold set.",
        default="beside the gold set",
    ),
    Key("cache", _PATH, "A folder to keep answers in: the same question is paid for once."),
    Key("shows_input", Flag(), "Whether jurors see what the service was asked.", default="true"),
    Key(
        "shows_expected",
        Flag(),
        "Whether jurors see, as the reference, what the input says under `expected`; every input "
        "and every entry of the gold set has to say it then.",
        default="false",
    ),
    Key(
        "output_limit", Count(), "The most characters of the reply that they see.", default="10000"
    ),
    Key("timeout", Duration(), "Of one question.", default="60s"),
    Key("retries", Count(0), "Further tries after one that failed.", default="1"),
    Key("name", Text(), "How reports call it."),
)
