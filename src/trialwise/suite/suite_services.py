"""The services that a contract may name: their keys, and how they are built.

Which keys a service has is declared by its constructor. A service is loaded when a suite names it,
and built and checked before the first trial.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from trialwise.declarations import scalars, signatures
from trialwise.declarations.resources import PythonFunction, SecretName
from trialwise.declarations.scalars import Schema, Text
from trialwise.declarations.signatures import Arg, Natural, Positive, Seconds, derive_keys
from trialwise.declarations.structures import Either, Fields, Key, Listing, More, Record, Short
from trialwise.declarations.written import (
    INVALID,
    Invalid,
    Node,
    Reader,
    lay_over,
    show_value,
    suggest_name,
)
from trialwise.errors import InvalidArgument, TrialwiseError
from trialwise.extensions import SERVICES, extension_names
from trialwise.judges import preference
from trialwise.judges.calibration import GoldFiles, read_calibration
from trialwise.judges.gold import GoldSet, PairGold, read_gold, read_pair_gold
from trialwise.judges.jurors import Juror, VoteCache
from trialwise.judges.rubric import judge
from trialwise.judges.votes import quorum_of
from trialwise.model.fingerprint import fingerprint
from trialwise.services.model_apis import find_api
from trialwise.services.service_factors import ServiceDeclaration, find_service, service_names
from trialwise.suite.reading_context import Context
from trialwise.suite.yaml_reading import plain


class DeclaredService(signatures.DeclaredKind[ServiceDeclaration]):
    """The keys of a declared service, or its main one alone."""

    def __init__(self, name: str) -> None:
        super().__init__(name, find_service)

    @property
    def kind(self) -> Record | Short:
        """How it is written."""
        record = Record(self.name, self.keys, doc=self.doc)
        return Short(record) if self.declared.is_short else record


def _find_key(name: str) -> Key | None:
    return None if find_service(name) is None else Key(name, DeclaredService(name))


_NAMES = service_names()
SERVICE = Record(
    "service",
    tuple(Key(name, DeclaredService(name)) for name in _NAMES),
    one_of=((*_NAMES, "*"),),
    doc="What is under test.",
    more=More(_find_key, lambda: extension_names(SERVICES)),
)


def build_service(fields: Fields, context: Context, *, needed: bool = False) -> Any:
    """Build the service, or `INVALID` once its problems are reported.

    Args:
        fields: The service's.
        context: The suite being read.
        needed: Whether it is called although something else stands for what is under test.
    """
    if not fields.sound:
        return INVALID
    declared = _declaration(fields)
    node, given = fields.at(declared.name), fields[declared.name]
    for key in declared.keys:
        if isinstance(key.kind, SecretName):
            # Made or not, its key is to be kept out of records.
            # Where nobody names one, it is that of the service's API.
            usual = find_api(given["api"]).usual_key if "api" in given else key.fallback
            context.note_variable(given.get(key.name, usual))
    # A recording stands for it, on a machine that may have neither its keys nor its libraries.
    if context.without_services and not needed:
        return None
    try:
        built = signatures.build_declared(
            _for_model(declared, given), declared.keys, given, context
        )
        # Every input would get the same reply, and a high rate would say nothing.
        if getattr(built, "takes_nothing", False):
            where = show_value(given.at(declared.main.name))
            message = f"{where} takes no input: give the function a parameter for it"
            return context.refuse(node, message)
        return built
    except InvalidArgument as error:
        at, what = signatures.find_refused(error, declared.keys, given, declared.name)
        # The value itself may be a secret that does not belong into the file at all.
        return context.refuse(at, f"`{what}` must {error.allowed}", hide=what == "headers")
    except (TrialwiseError, ValueError, OSError) as error:
        return context.refuse(node, f"`{declared.name}`: {error}")


def service_label(fields: Fields) -> str:
    """Return what a service is called where nobody named it.

    It is what was written, the same on every machine and with every environment, since baselines
    are found by it.
    """
    declared = _declaration(fields)
    key = declared.main
    node = fields[declared.name].at(key.name)
    text = str((next(node.items()) if node.is_list else node).value)
    # With the names of variables for their values.
    return key.kind.label(re.sub(r"\$\{(\w+)[^}]*\}", r"\1", text))


def hash_service(fields: Fields, model: str | None) -> str:
    """Return the kind of a service and a hash of what is written about it.

    Args:
        fields: The service's.
        model: The model it is for, where there are several.
    """
    # Of what was written and not of the object: `run --watch` asks again only where that changes.
    text = repr((list_values(fields), model))
    return f"{_declaration(fields).name}:{sha256(text.encode()).hexdigest()[:16]}"


def list_values(value: Any) -> Any:
    """Values without their places in the file."""
    if isinstance(value, Fields):
        value = value.values
    if isinstance(value, dict):
        return {str(name): list_values(one) for name, one in value.items()}
    return [list_values(one) for one in value] if isinstance(value, list) else str(value)


def _declaration(fields: Fields) -> ServiceDeclaration:
    declared = find_service(next(iter(fields.nodes)))
    assert declared is not None
    return declared


def _for_model(declared: ServiceDeclaration, given: Fields) -> Callable[..., Any]:
    """Return the constructor, where a function is given the model of its contract first."""
    function = next((key for key in declared.keys if isinstance(key.kind, PythonFunction)), None)
    if function is None or "model" not in given:
        return declared.constructor

    def construct(**arguments: Any) -> Any:
        called = arguments[function.field]
        if "model" not in signature(called).parameters:
            if not given["needs_model"]:
                return declared.constructor(**arguments)
            allowed = "take a parameter `model`, since the contract has `models`"
            raise InvalidArgument(function.field, called, allowed)
        arguments[function.field] = partial(called, model=given["model"])
        return declared.constructor(**arguments)

    return construct


# --- A judge in a suite: its keys, and how it is built with its jurors ----------------------------

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


# --- A service as an arm of a contract changes it -------------------------------------------------


class ServiceChange(scalars.Kind):
    """What an arm changes in a service: another one by name, or some of its keys.

    It is read as a service once it is laid over the contract's own.
    """

    expected = "the name of a service, or keys of a service that change"
    spelled = "service"

    def read(self, node: Node, label: str, reader: Reader) -> Node | Invalid:
        """Return the node itself."""
        if node.is_list or (node.is_scalar and not isinstance(node.value, str)):
            return self.refuse(node, label, reader)
        return node

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """Return the services with their keys, of which none is required."""
        installed = extension_names(SERVICES) if getattr(defs, "installed", False) else ()
        services = {}
        for declared in filter(None, map(find_service, (*service_names(), *installed))):
            keys = {key.name: {"description": key.doc} for key in declared.keys}
            change = _describe_keys(keys)
            either = {"anyOf": [{"type": ["string", "array"]}, change]}
            services[declared.name] = either if declared.is_short else change
        change = {**_describe_keys(services), "minProperties": 1}
        return {"anyOf": [{"type": "string", "pattern": r"\S"}, change]}


def _describe_keys(keys: Schema) -> Schema:
    """Describe a mapping of which no key is required, and which may be included."""
    return {
        "type": "object",
        "properties": {**keys, "include": {"$ref": "#/$defs/includes"}},
        "additionalProperties": False,
    }


def change_service(
    base: Node | None, change: Node, services: Mapping[str, Node], context: Context
) -> Any:
    """Return an arm's service: the name of another one, or what is read once it is changed.

    Args:
        base: The contract's service, as it is written.
        change: What the arm says.
        services: The suite's services by name, as they are written.
        context: The suite being read.
    """
    if not change.is_mapping:
        return change.value
    if base is not None and isinstance(base.value, str):
        base = services.get(base.value)  # a name that is not there is reported by the contract
    # There is nothing to lay the change over, so it has to be a whole service.
    if base is None or not base.is_mapping:
        return SERVICE.read(change, "`service`", context)
    return SERVICE.read(_lay_over_service(base, change, context), "`service`", context)


def _lay_over_service(base: Node, change: Node, context: Context) -> Node:
    """Lay the change over a service; one of another kind replaces it as a whole."""
    ours, theirs = context.entries(base), context.entries(change)
    kind = next(iter(ours), "")
    declared = find_service(kind) if kind else None
    if declared is None:
        return change
    for name, (key, _) in theirs.items():
        if name != kind and name in {one.name for one in declared.keys}:
            hint = f"write it into the service: `service: {{{kind}: {{{name}: …}}}}`"
            context.refuse(key, f"`{name}` is a key of `{kind}`; {hint}")
            return base
    if kind not in theirs:
        return change
    key, value = theirs[kind]
    whole = _lay_over_keys(declared, ours[kind][1], value, context)
    return change.with_entries({**theirs, kind: (key, whole)})


def _lay_over_keys(
    declared: ServiceDeclaration, base: Node, change: Node, context: Context
) -> Node:
    written = []
    for node in (base, change):
        if node.is_mapping:
            written.append(context.entries(node))
        elif declared.is_short:
            # The value of its main key alone.
            written.append({declared.main.name: (node, node)})
    if len(written) < 2:
        return change
    ours, theirs = written
    kinds = {key.name: key.kind for key in declared.keys}
    joined = dict(ours)
    for name, (key, value) in theirs.items():
        # Some keys take null as a value of their own, which then takes nothing away.
        if value.value is None and name in kinds and not kinds[name].takes_null:
            if name not in ours:
                hint = suggest_name(name, ours, "the contract's service does not have it")
                context.refuse(key, f"null takes `{name}` away; {hint}")
            joined.pop(name, None)
        elif name in ours:
            joined[name] = key, lay_over(ours[name][1], value)
        else:
            joined[name] = key, value
    return change.with_entries(joined)


class _Quorum(scalars.Scalar):
    """The share of votes that have to pass, exactly."""

    expected = "`majority`, or a share of the votes such as 2/3 or 75%"
    spelled = "quorum"

    def convert(self, value: Any) -> Any:
        """Return the share as it was written, because a decimal cannot express a third."""
        text = str(value).strip() if scalars.is_number(value) or isinstance(value, str) else ""
        # Read as text: 2/3 has no decimal, and 0.67 is more than two votes of three.
        if re.fullmatch(_SHARE, text):
            with suppress(InvalidArgument):
                quorum_of(text := re.sub(r"\s", "", text))
                return text
        return None

    def spellings(self) -> list[Schema]:
        """Return a word, a fraction, a percentage or a number."""
        return [
            {"type": "string", "pattern": rf"^\s*(?:{_SHARE})\s*$", "examples": ["2/3"]},
            {"type": "number", "minimum": 0, "maximum": 1},
        ]


_JURORS = Either(
    "a service or a list of services",
    mapping=SERVICE,
    listing=Listing(SERVICE, "a list of services"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSection:
    """Models grade whether the reply meets a rubric. It must be the criterion's only check.

    Args:
        rubric: What a reply must meet completely, in words.
        jurors: The models to ask: any service that answers a conversation, such as a `chat` model.
        votes: The number of votes. Jurors are asked in turn.
        quorum: The share of votes that must pass. A `majority` is more than half, so a tie fails;
            with `1/2` a tie passes. Write `2/3`, because 0.67 is more than two of three.
        gold: The gold set: outputs that people labelled. Without it the judge is advisory.
        calibration: The file with the result of `trialwise judge calibrate`.
        labels_count_as_trials: Whether the labelled outputs are those of the service as it is now,
            drawn like the trials. The labels are then evidence for the rate, beside the trials.
        cache: A folder for answers, so that you pay for the same question only once.
        shows_input: Whether jurors see the input.
        shows_expected: Whether jurors see `expected` of the input as the reference. Every input and
            every entry of the gold set then needs it.
        output_limit: How many characters of the reply the jurors see.
        timeout: Time limit for one question.
        retries: Number of further attempts after a failed one.
        name: The name in reports.
    """

    rubric: Annotated[str, Arg(kind=Text(environment="kept"))]
    jurors: Annotated[Any, Arg(kind=_JURORS)]
    votes: Annotated[int | None, Arg(kind=scalars.Count(), default="one of each juror")] = None
    quorum: Annotated[str, Arg(kind=_Quorum())] = "majority"
    gold: Annotated[str | None, Arg(kind=_PATH)] = None
    calibration: Annotated[str | None, Arg(kind=_PATH, default="beside the gold set")] = None
    labels_count_as_trials: bool = False
    cache: Annotated[str | None, Arg(kind=_PATH)] = None
    shows_input: bool = True
    shows_expected: bool = False
    output_limit: Positive = 10_000
    timeout: Seconds = 60.0
    retries: Natural = 1
    name: str = ""


JUDGE_KEYS = derive_keys(JudgeSection, texts="refused")


class PreferenceSection:
    """A judge that prefers one of two replies, asked in both orders.

    Args:
        rubric: What makes one reply better than another, in words.
        juror: The model to ask, in both orders of the two replies.
        gold: Pairs of outputs with what people prefer. Without it the preference is advisory.
        calibration: The file with the result of `trialwise judge calibrate`.
        cache: A folder for answers, so that you pay for the same question only once.
        output_limit: How many characters of the reply the jurors see.
        timeout: Time limit for one question.
        retries: Number of further attempts after a failed one.
        name: The name of the criterion in reports.
    """

    rubric: Annotated[str, Arg(kind=Text(environment="kept"))]
    juror: Annotated[Any, Arg(kind=SERVICE)]
    gold: Annotated[str | None, Arg(kind=_PATH)] = None
    calibration: Annotated[str | None, Arg(kind=_PATH, default="beside the gold set")] = None
    cache: Annotated[str | None, Arg(kind=_PATH)] = None
    output_limit: Positive = 10_000
    timeout: Seconds = 60.0
    retries: Natural = 1
    name: str = "preference"


PREFERENCE = signatures.declare_record("preference", PreferenceSection)


_Read: TypeAlias = Callable[[Path], GoldSet | PairGold]


def build_preference(fields: Any, context: Context) -> Any:
    """Build the judge of a comparison's replies; None where there is none or it has a problem."""
    if not isinstance(fields, Fields):
        return None
    made = _build(preference.pairwise, fields, [fields["juror"]], read_pair_gold, context)
    return None if made is INVALID else made


def build_judge(fields: Fields, context: Context) -> Any:
    """Build the judge, or `INVALID` once its problems are reported."""
    given = fields["jurors"]
    jurors = given if isinstance(given, list) else [given]
    read = partial(read_gold, needs_expected=fields.get("shows_expected", False))
    return _build(judge, fields, jurors, read, context)


def _build(
    make: Callable[..., Any], fields: Fields, services: list[Fields], read: _Read, context: Context
) -> Any:
    jurors = [_juror(one, context) for one in services]
    measured = _read_measured(fields, context, read)
    if INVALID in jurors or isinstance(measured, Invalid) or not jurors:
        return INVALID
    options = fields.given(*_SAME) | measured
    if "timeout" in fields:
        options["timeout_s"] = fields["timeout"]
    if "cache" in fields:
        options["cache"] = VoteCache(context.file(fields["cache"]))
    try:
        return make(fields["rubric"], *jurors, **options)
    except InvalidArgument as error:
        return context.refuse(fields.at(error.argument), f"`{error.argument}` must {error.allowed}")


def _juror(fields: Fields, context: Context) -> Any:
    """Return a service as a juror, named by what is written about it."""
    # A juror is asked also where a recording stands for the service under test.
    service = build_service(fields, context, needed=True)
    if isinstance(service, Invalid):
        return INVALID
    return Juror(service, f"{service_label(fields)}#{fingerprint(plain(fields.node))[:8]}")


def _read_measured(fields: Fields, context: Context, read: _Read) -> dict[str, Any] | Invalid:
    """Read the files of a judge's calibration, and the calibration where there is one."""
    # Without labels nobody knows how often it is wrong, so that it only advises.
    if "gold" not in fields:
        for key in ("calibration", "labels_count_as_trials"):
            if key in fields:
                message = f"`{key}` goes with `gold`, the gold set that the judge is measured by"
                return context.refuse(fields.keys[key], message)
        return {}
    files = GoldFiles.beside(context.file(fields["gold"]))
    if "calibration" in fields:
        files = GoldFiles(files.gold, context.file(fields["calibration"]))
    at = "gold"
    try:
        gold = read(files.gold)
        # The gold set comes first; `trialwise judge calibrate` writes the other file.
        if not files.calibration.exists():
            return {"files": files}
        at = "calibration"
        calibration = read_calibration(files.calibration, gold=gold.fingerprint)
    except TrialwiseError as error:
        return context.refuse(fields.at(at), str(error))
    return {"files": files, "calibration": calibration}
