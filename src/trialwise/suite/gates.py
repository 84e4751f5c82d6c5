"""Gates: what is asked of numbers that only repeated runs have, read and built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from trialwise.declarations import written
from trialwise.declarations.scalars import Choice, Kind, Number, Schema, Text
from trialwise.declarations.signatures import build_declared, setting_keys
from trialwise.declarations.structures import Either, Fields, Key, Listing, Record
from trialwise.declarations.written import INVALID, Invalid, Node, Reader
from trialwise.errors import InvalidArgument
from trialwise.model.criterion import Criterion
from trialwise.model.gate import GATES, Expectation, Gate, find_target, targets_of
from trialwise.suite.reading_context import check_sampling, make_model

if TYPE_CHECKING:
    from trialwise.model.matcher import Matcher

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
#: Matchers elsewhere that ask a model: a gate takes those that are arithmetic.
_ASK_A_MODEL = (
    *("judge", "jury", "llm_judge", "llm_jury", "llm_rubric"),
    *("similar", "similarity", "embedding"),
)
_IN_SCHEMA = {word: f"write `schema: {{{limit}: …}}`" for word, limit in _LIMITS.items()}
_NO_ARITHMETIC = dict.fromkeys(
    _ASK_A_MODEL,
    "it asks a model, and a gate is arithmetic on runs that are over: let a criterion ask it of "
    "each reply",
)


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

    def read(self, node: Node, label: str, reader: Reader) -> Fields | Invalid:
        """Read its one key."""
        return MATCHER.read(node, label, reader)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """Return the same."""
        return MATCHER.schema(defs)


NUMBER_SCHEMA = Record(
    "number-schema",
    tuple(
        Key(name, _Limit(), said, field=field)
        for name, field, said in (
            ("minimum", "minimum", "The smallest allowed number."),
            ("maximum", "maximum", "The largest allowed number."),
            ("exclusiveMinimum", "exclusive_minimum", "The number must be greater than this."),
            ("exclusiveMaximum", "exclusive_maximum", "The number must be less than this."),
        )
    ),
    some_of=(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),),
    doc="Limits on a number, with the names of JSON Schema.",
)
NO_WORSE = Record(
    "no-worse",
    (Key("margin", _Limit(), "How much worse the number may be.", default="0"),),
    doc="The number that the baseline holds, with a margin.",
)
_MATCHERS = ("schema", "exact", "not", "all_of", "any_of", "no_worse_than")
MATCHER = Record(
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
            Either("`baseline`, or `{margin: …}`", scalar=Choice("baseline"), mapping=NO_WORSE),
            "The number that `trialwise measure` kept in the baseline, which must not get worse.",
        ),
    ),
    one_of=(_MATCHERS,),
    notes={**_NO_ARITHMETIC, **_IN_SCHEMA},
    doc="The values that a number may have. A number within 1e-9 of a limit counts as equal to it.",
)
MATCHER.expected = _Matcher.expected
EXPECTATION = Record(
    "expectation",
    (
        Key("target", Text(), "The number, such as `stability.score` or `metrics.pass_hat.3`."),
        Key("matcher", MATCHER, "The values that the number may have."),
    ),
    required=("target", "matcher"),
    notes={
        word: f"it belongs in the matcher: `matcher: {{{said}}}`"
        for word, said in (
            *((word, f"schema: {{{limit}: …}}") for word, limit in _LIMITS.items()),
            *((name, f"{name}: …") for name in _MATCHERS),
        )
    },
    doc="A number and its limits. It has no error rate.",
)


def _block(name: str, usual: str, *, doc: str) -> Record:
    """Return the record of a gate: what is asked of its numbers, and its settings."""
    shared = {key.name for key in setting_keys(Gate)}
    # What all gates have comes last.
    kind: Any = GATES[name]
    settings = sorted(setting_keys(kind), key=lambda key: key.name in shared)
    asked = "; ".join(f"`{one.target}` {one.matcher}" for one in kind().expect)
    numbers = Key(
        "expect",
        Listing(EXPECTATION, "a list of expectations"),
        "The numbers to test and their limits.",
        default=asked or "reported only",
    )
    block = Record(name, (numbers, *settings), doc=doc)
    block.expected = f"a mapping, or {{}} for {usual}"
    return block


RELIABILITY = _block(
    "reliability",
    "the numbers alone",
    doc="What repeated runs of each input come to, in percent. Targets: `reliability.runs`, "
    "`.pass_at_k`, `.passhat_k`, `.variance_amplification`, `.graceful_degradation`.",
)
STABILITY = _block(
    "stability",
    "a weakest score of at least 0.5",
    doc="How steady each run's session was, by four heuristics of its trace. Targets: "
    "`stability.score`, `.weakest_score`, `.variance`, the lowest of each sub-score "
    "(`.tool_usage_stability`, `.response_consistency`, `.redundancy`, `.cost_per_progress`) and "
    "the number of runs below a floor, `.drifted`.",
)
METRICS = _block(
    "metrics",
    "the numbers alone",
    doc="pass@k, pass^k, weighted scores and flakiness, each a mean over inputs. Targets: "
    "`metrics.pass_rate`, `.score`, `.flaky`, `.flakiness`, `.unscored`, and for any number of "
    "trials K `.pass_at.K`, `.pass_hat.K`, `.pass_at_naive.K`, `.pass_hat_plugin.K`.",
)


# --- How gates are built from what was read ---


def build_gates(
    fields: Fields, criteria: Sequence[Criterion], samplings: list[str] | None, context: Reader
) -> dict[str, Gate]:
    """Build the gates that are sound, by name.

    Args:
        fields: The contract's.
        criteria: Those that are sound.
        samplings: Its samplings, where they are known.
        context: The suite being read.
    """
    built: dict[str, Gate] = {}
    kind: Any
    for name, kind in GATES.items():
        given = fields.get(name)
        if not isinstance(given, Fields):
            continue
        if not _names_samplings(given, samplings, context):
            check_sampling(given, samplings, f"`{name}`", context)
        expect = _expectations(name, given, context)
        if not given.sound or expect is None or not _weights_are_sound(given, context):
            continue
        # The weights of graders are those of the gate, unless the gate says otherwise.
        graders = fields.get("graders", [])
        make = partial(kind, expect=expect)
        if name == "metrics" and graders and not {"weights", "criterion"} & given.nodes.keys():
            make = partial(make, weights={one.name: one.weight for one in graders})
        # A suite may write one number; the model holds several.
        if isinstance(given.get("k"), int):
            given.values["k"] = (given["k"],)
        keys = setting_keys(kind)
        gate = make_model(partial(build_declared, make, keys, given, context), given, context)
        if isinstance(gate, Invalid) or samplings is None:
            continue
        built[name] = gate
        _check_criteria(gate, given, criteria, samplings, context)
    return built


def _names_samplings(given: Fields, samplings: list[str] | None, context: Reader) -> bool:
    """Return whether a gate names several samplings; those that there are not are reported."""
    several: list[str] = given.get("samplings", [])
    for name in several:
        if samplings is not None and name not in samplings:
            hint = written.suggest_name(name, samplings, f"there are {_list_words(samplings)}")
            context.refuse(given.at("samplings"), f"there is no sampling `{name}`; {hint}")
    return bool(several)


def _check_criteria(
    gate: Gate,
    given: Fields,
    criteria: Sequence[Criterion],
    samplings: Sequence[str],
    context: Reader,
) -> None:
    only = samplings[0] if len(samplings) == 1 else None
    looked_at = [one or only for one in gate.all_samplings]
    # Which sampling is meant was asked for already; its criteria are not known until then.
    if None in looked_at:
        return
    mine = [one for one in criteria if (one.sampling or samplings[0]) in looked_at]
    names = [one.name for one in mine]
    weights = given.get("weights")
    unknown = [one for one in weights.nodes if one not in names] if weights else []
    for name in unknown:
        hint = written.suggest_name(name, names, f"there are {_list_words(names)}")
        context.refuse(weights.keys[name], f"there is no criterion `{name}` here; {hint}")
    promised = [one.name for one in mine if not one.report_only]
    if weights and not unknown and not set(promised) <= weights.nodes.keys():
        # Left out by mistake, it would silently not count.
        message = f"`weights` must give one weight to each of {', '.join(promised)}, got a mapping"
        context.refuse(given.at("weights"), message)
    elif not unknown:
        make_model(partial(gate.check_criteria, names), given, context)


def _list_words(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _weights_are_sound(given: Fields, context: Reader) -> bool:
    """Each is above 0: what counts nothing is left to `criterion`."""
    weights = given.get("weights")
    wrong = [name for name, weight in weights.values.items() if weight <= 0] if weights else []
    for name in wrong:
        node = weights.at(name)
        context.refuse(
            node, f"the weight of `{name}` must be above 0, got {written.show_value(node)}"
        )
    return not wrong


def _expectations(gate: str, given: Fields, context: Reader) -> tuple[Expectation, ...] | None:
    """Return the expectations; None once something is wrong with one of them."""
    found: list[Expectation] = []
    asked: list[Fields] = given.get("expect", [])
    for one in asked:
        target, matcher = one.get("target"), one.get("matcher")
        # Reported when it was read.
        if target is None or not isinstance(matcher, Fields) or not one.sound:
            continue
        if find_target(target) is None or not target.startswith(f"{gate}."):
            context.refuse(one.at("target"), _refuse_target(gate, target))
            continue
        match = _matcher(matcher, context)
        if isinstance(match, Invalid):
            continue
        try:
            found.append(Expectation(target=target, matcher=match))
        except InvalidArgument as error:
            # The limit is in words, since its mapping would be shown as one.
            message = f"`matcher` must {error.allowed}, got `{match}`"
            context.refuse(one.at("matcher"), message)
    # A gate without one of its expectations would pass too easily, so that it is not built.
    return tuple(found) if len(found) == len(asked) else None


def _refuse_target(gate: str, target: str) -> str:
    known = targets_of(gate)
    # All of them begin alike, so that only the rest tells which is near.
    names = [one.removeprefix(f"{gate}.") for one in known]
    close = written.find_nearest(target.removeprefix(f"{gate}."), names)
    hint = f"there are {', '.join(known)}"
    if close:
        path = f"{gate}.{close}"
        hint = f"did you mean `{path}`?"
        if path.endswith(".K"):
            hint = f"it ends with a number of trials, such as `{path.removesuffix('K')}3`"
    return f"there is no target `{target}` in `{gate}`; {hint}"


def _matcher(fields: Fields, context: Reader) -> Any:
    from trialwise.model.matcher import AllOf, AnyOf, Exact, Not, NoWorse, NumberSchema

    ((name, given),) = fields.values.items()
    inner = given if isinstance(given, list) else [given] if name == "not" else []
    parts = tuple(_matcher(one, context) for one in inner)
    # What is wrong within was reported where it stands.
    if INVALID in parts:
        return INVALID
    make: dict[str, Callable[[], Matcher]] = {
        "exact": lambda: Exact(value=given),
        "schema": lambda: build_declared(NumberSchema, NUMBER_SCHEMA.keys, given, context),
        "no_worse_than": lambda: NoWorse(
            margin=given.get("margin", 0.0) if isinstance(given, Fields) else 0.0
        ),
        "not": lambda: Not(matcher=parts[0]),
        "all_of": lambda: AllOf(matchers=parts),
        "any_of": lambda: AnyOf(matchers=parts),
    }
    return make_model(make[name], fields, context)
