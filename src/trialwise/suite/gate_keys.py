"""The keys of gates: what is asked of numbers that only repeated runs have."""

from __future__ import annotations

from typing import Any

from trialwise.declarations.quantities import Rate
from trialwise.declarations.scalars import Choice, Count, Kind, Number, Schema, Text
from trialwise.declarations.structures import Either, Fields, Key, Listing, MapOf, Record
from trialwise.declarations.written import Invalid, Reader, Written

#: Of `trialwise.stats.trace_stability`, which a suite without gates does not load.
_SUB_SCORES = ("tool_usage_stability", "response_consistency", "redundancy", "cost_per_progress")
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


def _block(name: str, keys: tuple[Key, ...], usual: str, *, doc: str) -> Record:
    block = Record(name, keys, doc=doc)
    block.expected = f"a mapping, or {{}} for {usual}"
    return block


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

_EXPECT = Listing(EXPECTATION, "a list of expectations")
_SAMPLING = Key("sampling", Text(), "The sampling of the contract to use.")
_CONFIDENCE = Key(
    "confidence", Rate(), "The confidence of the interval of each number.", default="95%"
)

RELIABILITY = _block(
    "reliability",
    (
        Key("expect", _EXPECT, "The numbers to test and their limits.", default="reported only"),
        Key(
            "criterion",
            Text(),
            "The criterion whose outcomes count.",
            default="a run passes every criterion",
        ),
        Key(
            "half_width",
            Rate(),
            "The half-width of the interval for the recommended number of runs.",
            default="5%",
        ),
        _SAMPLING,
        _CONFIDENCE,
    ),
    "the numbers alone",
    doc="What repeated runs of each input come to, in percent. Targets: `reliability.runs`, "
    "`.pass_at_k`, `.passhat_k`, `.variance_amplification`, `.graceful_degradation`.",
)
STABILITY = _block(
    "stability",
    (
        Key(
            "expect",
            _EXPECT,
            "The numbers to test and their limits.",
            default="`stability.weakest_score` at least 0.5",
        ),
        Key(
            "floors",
            Record(
                "floors",
                tuple(Key(name, Rate(), f"Of {name}.", default="0.5") for name in _SUB_SCORES),
                doc="Limits below which a sub-score of a run is flagged as drifted.",
            ),
            "Limits below which a run is flagged. `stability.drifted` counts flagged runs.",
        ),
        Key(
            "exclude",
            Listing(Choice(*_SUB_SCORES), "a list of sub-scores"),
            "Sub-scores to leave out.",
        ),
        Key(
            "tokens_per_call",
            Count(),
            "The number of tokens for each useful call above which cost lowers the score.",
            default="2000",
        ),
        _SAMPLING,
        _CONFIDENCE,
    ),
    "a weakest score of at least 0.5",
    doc="How steady each run's session was, by four heuristics of its trace. Targets: "
    "`stability.score`, `.weakest_score`, `.variance`, the lowest of each sub-score "
    "(`.tool_usage_stability`, `.response_consistency`, `.redundancy`, `.cost_per_progress`) and "
    "the number of runs below a floor, `.drifted`.",
)
METRICS = _block(
    "metrics",
    (
        Key("expect", _EXPECT, "The numbers to test and their limits.", default="reported only"),
        Key(
            "k",
            Either(
                "a whole number of at least 1, or a list of them",
                scalar=Count(),
                listing=Listing(Count(), "a list of whole numbers"),
            ),
            "The values of k in the table of pass@k and pass^k.",
            default="powers of two up to the runs of an input",
        ),
        Key(
            "weights",
            MapOf(Number(), "weights by criterion"),
            "The weight of each criterion in a run's score. Those without one do not count.",
        ),
        Key(
            "threshold",
            Rate(),
            "The score from which a run passes.",
            default="a run passes every criterion",
        ),
        Key("criterion", Text(), "The only criterion whose outcomes count."),
        _SAMPLING,
        Key(
            "samplings",
            Listing(Text("the name of a sampling"), "a list of samplings"),
            "Several samplings that make up one skill, each with criteria of its own.",
        ),
        _CONFIDENCE,
    ),
    "the numbers alone",
    doc="pass@k, pass^k, weighted scores and flakiness, each a mean over inputs. Targets: "
    "`metrics.pass_rate`, `.score`, `.flaky`, `.flakiness`, `.unscored`, and for any number of "
    "trials K `.pass_at.K`, `.pass_hat.K`, `.pass_at_naive.K`, `.pass_hat_plugin.K`.",
)
