"""The keys of gates: what is asked of numbers that only repeated runs have."""

from __future__ import annotations

from typing import Any

from trialwise.declarations.scalars import Choice, Kind, Number, Schema, Text
from trialwise.declarations.settings import setting_keys
from trialwise.declarations.structures import Either, Fields, Key, Listing, Record
from trialwise.declarations.written import Invalid, Reader, Written
from trialwise.model.gate import Gate, Metrics, Reliability, Stability

#: Matchers elsewhere that ask a model, by the names they go under.
_ASK_A_MODEL = frozenset(
    {"judge", "jury", "llm_judge", "llm_jury", "llm_rubric", "similar", "similarity", "embedding"}
)
#: What people call limits elsewhere, by what a schema calls them.
_LIMITS = {
    word: limit
    for limit, words in {
        "minimum": "minimum min at_least gte ge",
        "maximum": "maximum max at_most lte le",
        "exclusiveMinimum": "exclusiveminimum gt",
        "exclusiveMaximum": "exclusivemaximum lt",
    }.items()
    for word in words.split()
}


class _Asking(Record):
    """A record in which a key in the wrong place is all that is said of it."""

    def _check_present(self, fields: Fields, meant: set[str], label: str, reader: Reader) -> None:
        known = {"include", *(key.name for key in self.keys)}
        # What seems to be missing was written in another way, and that was reported.
        if fields.node.entries.keys() <= known:
            super()._check_present(fields, meant, label, reader)


class _Matchers(_Asking):
    """The matchers, of which a gate takes those that are arithmetic."""

    def _unknown(self, name: str, close: str | None, reader: Reader) -> str:
        plain = _plain(name)
        if plain in _ASK_A_MODEL:
            return (
                f"`{name}` asks a model, and a gate is arithmetic on runs that are over: let a "
                "criterion ask it of each reply"
            )
        if plain in _LIMITS:
            return f"`{name}` is no matcher; write `schema: {{{_LIMITS[plain]}: …}}`"
        return super()._unknown(name, close, reader)


class _Expectations(_Asking):
    """Targets with their matchers."""

    def _unknown(self, name: str, close: str | None, reader: Reader) -> str:
        plain = _plain(name)
        if plain in _LIMITS:
            limit = _LIMITS[plain]
            return f"`{name}` belongs into the matcher: `matcher: {{schema: {{{limit}: …}}}}`"
        if any(name == key.name for key in MATCHER.keys):
            return f"`{name}` belongs into the matcher: `matcher: {{{name}: …}}`"
        return super()._unknown(name, close, reader)


def _plain(name: str) -> str:
    return name.casefold().replace("-", "_")


class _Limit(Number):
    """A number that a target is held against, in the target's own unit."""

    def hint(self, value: Any) -> str:
        """Percents are written without a sign, or as a share."""
        number = value.removesuffix("%").strip() if isinstance(value, str) else ""
        try:
            share = float(number) / 100
        except ValueError:
            return ""
        return f"{number} for a target in percent, {share:g} for any other" if "%" in value else ""


class _Matcher(Kind):
    """A matcher within another."""

    expected = "a matcher such as `schema: {minimum: 0.5}`"
    spelled = "[matcher](#matcher)"

    def read(self, node: Written, label: str, reader: Reader) -> Fields | Invalid:
        """Read its one key."""
        return MATCHER.read(node, label, reader)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """Return the same."""
        return MATCHER.schema(defs)


NUMBER_SCHEMA = Record(
    "number-schema",
    (
        Key("minimum", _Limit(), "The smallest allowed number."),
        Key("maximum", _Limit(), "The largest allowed number."),
        Key("exclusiveMinimum", _Limit(), "The number must be greater than this."),
        Key("exclusiveMaximum", _Limit(), "The number must be less than this."),
    ),
    some_of=(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),),
    doc="Limits on a number, with the names of JSON Schema.",
)
NO_WORSE = Record(
    "no-worse",
    (Key("margin", _Limit(), "How much worse the number may be.", default="0"),),
    doc="The number that the baseline holds, with a margin.",
)
MATCHER = _Matchers(
    "matcher",
    (
        Key("schema", NUMBER_SCHEMA, "Limits on the number."),
        Key("exact", _Limit(), "The exact number."),
        Key("not", _Matcher(), "A matcher that must not match."),
        Key("all_of", Listing(_Matcher(), "a list of matchers"), "Matchers that must all match."),
        Key(
            "any_of",
            Listing(_Matcher(), "a list of matchers"),
            "Matchers of which at least one must match.",
        ),
        Key(
            "no_worse_than",
            Either(
                "`baseline`, or `{margin: …}`",
                scalar=Choice("baseline"),
                mapping=NO_WORSE,
            ),
            "The number that `trialwise measure` kept in the baseline, which must not get worse.",
        ),
    ),
    one_of=(("schema", "exact", "not", "all_of", "any_of", "no_worse_than"),),
    doc="The values that a number may have. A number within 1e-9 of a limit counts as equal to it.",
)
MATCHER.expected = _Matcher.expected
EXPECTATION = _Expectations(
    "expectation",
    (
        Key("target", Text(), "The number, such as `stability.score` or `metrics.pass_hat.3`."),
        Key("matcher", MATCHER, "The values that the number may have."),
    ),
    required=("target", "matcher"),
    doc="A number and its limits. It has no error rate.",
)


def _block(name: str, kind: type, usual: str, *, expect: str, doc: str) -> Record:
    """Return the record of a gate: what is asked of its numbers, and its settings."""
    shared = {key.name for key in setting_keys(Gate)}
    # What all gates have comes last.
    settings = sorted(setting_keys(kind), key=lambda key: key.name in shared)
    numbers = Key(
        "expect",
        Listing(EXPECTATION, "a list of expectations"),
        "The numbers to test and their limits.",
        default=expect,
    )
    block = Record(name, (numbers, *settings), doc=doc)
    block.expected = f"a mapping, or {{}} for {usual}"
    return block


RELIABILITY = _block(
    Reliability.name,
    Reliability,
    "the numbers alone",
    expect="reported only",
    doc="What repeated runs of each input come to, in percent. Targets: `reliability.runs`, "
    "`.pass_at_k`, `.passhat_k`, `.variance_amplification`, `.graceful_degradation`.",
)
STABILITY = _block(
    Stability.name,
    Stability,
    "a weakest score of at least 0.5",
    expect="`stability.weakest_score` at least 0.5",
    doc="How steady each run's session was, by four heuristics of its trace. Targets: "
    "`stability.score`, `.weakest_score`, `.variance`, the lowest of each sub-score "
    "(`.tool_usage_stability`, `.response_consistency`, `.redundancy`, `.cost_per_progress`) and "
    "the number of runs below a floor, `.drifted`.",
)
METRICS = _block(
    Metrics.name,
    Metrics,
    "the numbers alone",
    expect="reported only",
    doc="pass@k, pass^k, weighted scores and flakiness, each a mean over inputs. Targets: "
    "`metrics.pass_rate`, `.score`, `.flaky`, `.flakiness`, `.unscored`, and for any number of "
    "trials K `.pass_at.K`, `.pass_hat.K`, `.pass_at_naive.K`, `.pass_hat_plugin.K`.",
)
