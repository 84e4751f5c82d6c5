"""`@pytest.mark.trials(...)`: what it may say, and the criteria and options that it means.

A marker accepts every key that a suite's criterion and contract accept, by the name of the field or
of the key, and amounts as a suite writes them: `at_least="90%"`, `budget={"time": "30s"}`.

Pure: a marker's arguments in, values of the model out. The caller adds where in the file it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from trialwise.declarations.signatures import convert_python, setting_keys, settings_of
from trialwise.declarations.written import ValueRefused, suggest_name
from trialwise.errors import InvalidArgument, TrialwiseError
from trialwise.model.claim import Input, Sampling
from trialwise.model.contract import MARKER_PARTS, PERCENTILES
from trialwise.model.criterion import Check, Criterion
from trialwise.model.options import Budget, RunOptions
from trialwise.plugin.session import Settings

#: The criterion of a body without a name of its own: that it ends without an exception.
BODY = "passes"

#: What a marker says of the body's own criterion: its question, and what goes with one only.
_BODY = (
    *("at_least", "no_worse_than", "never_fails", "mean_at_least"),
    *("min_probes", "categorical", "discharged_by"),
)
#: What a criterion and a run may be told, by the names of their fields.
_CRITERION = {key.field: key for key in setting_keys(Criterion) if key.field != "sampling"}
_RUN = {
    key.field: key
    for key in setting_keys(RunOptions)
    if settings_of(RunOptions)[key.field].in_pytest and key.field != "budget"
}
#: Those between 0 and 1, which somebody may have written as a percentage.
_RATES = ("at_least", "mean_at_least", "pass_at", "margin", "confidence", "alpha", "beta", "power")
#: What a marker says of all its criteria, unless one of them says otherwise.
_SHARED = tuple(
    name
    for name in _CRITERION
    # A test whose body is only reported could not pass, so that only further criteria may be.
    if name not in (*_BODY, *_RUN, "report_only")
)
#: The word of a suite for a field of another name, such as `ref` for `contract_ref`.
_WORDS = {key.name: field for field, key in (*_CRITERION.items(), *_RUN.items())}
_LATENCY = (*PERCENTILES, "baseline", "enforced", "confidence")
_OWN = ("inputs", "criteria", "budget", "tags", *MARKER_PARTS)
_KEYS = tuple(dict.fromkeys((*_BODY, *_RUN, *_SHARED, *_OWN)))


#: How like one of ours a keyword must be to be taken for a misspelt one of ours.
_MISSPELT = 0.75


def is_ours(kwargs: Mapping[str, Any]) -> bool:
    """Return whether a marker named `trials` is meant for trialwise, by its keywords.

    Another plugin may use the name, too: a marker with none of our keywords is its own.

    >>> is_ours({"at_leats": 0.9}), is_ours({"min_success": 0.9})
    (True, False)
    """
    words = (*_KEYS, *_WORDS)
    return not kwargs or any(
        isinstance(value, Mapping) or get_close_matches(word, words, n=1, cutoff=_MISSPELT)
        for word, value in kwargs.items()
    )


class MarkerError(TrialwiseError):
    """A marker that says something it cannot mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a marker asks of its test."""

    criteria: tuple[Criterion, ...]
    options: RunOptions
    sampling: Sampling
    tags: tuple[str, ...] = ()
    """Words by which `-k` selects the test."""
    has_inputs: bool = False
    """Whether the marker lists inputs."""
    parts: Mapping[str, Any]
    """What else the contract says: its claim, covariates, factors, latency and gates."""


def read_marker(
    args: Sequence[Any], kwargs: Mapping[str, Any], *, settings: Settings, body: Check
) -> Asked:
    """Read what a marker means under a session's settings.

    Args:
        args: Its positional arguments: at most the number of trials.
        kwargs: Its keyword arguments.
        settings: What the command line forces and what the ini file makes usual.
        body: What stands for the test's own function, as the postcondition of every criterion.

    Raises:
        MarkerError: A key that is not known, or a value that is none of its key's.
    """
    given = _with_fields(_with_positional(args, kwargs))
    named = {**_mapping("criteria", given.pop("criteria", {}))}
    for key in [key for key, value in given.items() if isinstance(value, Mapping)]:
        # A keyword of the user's own names a criterion and holds what it asks.
        if key not in _KEYS:
            named[key] = given.pop(key)
    for key in given:
        _check_key(key, _KEYS, "@pytest.mark.trials")
    budget, inputs = given.pop("budget", None), given.pop("inputs", None)
    tags = given.pop("tags", ())
    tags = (tags,) if isinstance(tags, str) else tags
    if not isinstance(tags, (list, tuple)) or not all(isinstance(one, str) for one in tags):
        raise MarkerError(f"tags must be words, got {tags!r}")
    parts = {name: given.pop(name) for name in MARKER_PARTS if name in given}
    chosen = settings.merge(given)
    try:
        criteria = tuple(_criteria(chosen, named, body))
        if chosen.get("max_trials") is not None and not any(one.at_least for one in criteria):
            allowed = "go with at_least: only a required rate is decided early"
            raise InvalidArgument("max_trials", chosen["max_trials"], allowed)
        options = {key: chosen[key] for key in _RUN if key in chosen}
        if budget is not None:
            options["budget"] = _budget(budget)
        if isinstance(options.get("overrides"), str):
            options["overrides"] = (options["overrides"],)
        if inputs is None:
            # A test without any is itself the one thing that is tried.
            sampling = Sampling(inputs=(Input(id="body", value=None),), identifier="body")
        else:
            sampling = inputs if isinstance(inputs, Sampling) else Sampling.of(inputs)
        return Asked(
            criteria=criteria,
            options=RunOptions(**options),
            sampling=sampling,
            tags=tuple(tags),
            has_inputs=inputs is not None,
            parts=_parts(parts, criteria, sampling),
        )
    except (InvalidArgument, ValueRefused) as error:
        raise MarkerError(str(error)) from None


def _with_positional(args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    if len(args) > 1:
        raise MarkerError(
            f"@pytest.mark.trials takes the number of trials and otherwise keywords, got {args!r}"
        )
    if args and (isinstance(args[0], str) or (isinstance(args[0], float) and 0 < args[0] <= 1)):
        raise MarkerError(
            f"@pytest.mark.trials({args[0]!r}): the first argument is the number of trials; did "
            f"you mean at_least={args[0]!r}?"
        )
    if args and "trials" in kwargs:
        raise MarkerError("@pytest.mark.trials is given the number of trials twice")
    return {**kwargs, **({"trials": args[0]} if args else {})}


def _with_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was given by the names of fields, with the amounts in texts such as "90%"."""
    found: dict[str, Any] = {}
    for word, value in given.items():
        name = _WORDS.get(word, word)
        key = _CRITERION.get(name) or _RUN.get(name)
        found[name] = value if key is None else convert_python(key.kind, value)
        if name in _RATES and type(value) in (int, float) and 1 < value <= 100:
            meant = f"did you mean {value / 100:g}, or {f'{value:g}%'!r}?"
            raise MarkerError(f"{word} must lie strictly between 0 and 1, got {value!r}; {meant}")
    return found


def _mapping(key: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise MarkerError(f"{key} must hold a dict by name, got {value!r}")
    return value


def _check_key(key: str, known: Sequence[str], where: str) -> None:
    if key in known:
        return
    hint = suggest_name(key, known, f"it knows {', '.join(known)}", quote="'")
    raise MarkerError(f"{where} has no {key!r}: {hint}")


def _criteria(
    chosen: Mapping[str, Any], named: Mapping[str, Mapping[str, Any]], body: Check
) -> Iterator[Criterion]:
    shared = {key: chosen[key] for key in _SHARED if key in chosen}
    asked = {key: chosen[key] for key in _BODY if key in chosen}
    if asked:
        yield Criterion(BODY, body, **asked, **shared)
    elif not named:
        raise MarkerError(
            "@pytest.mark.trials asks nothing: say at_least=0.9, no_worse_than='baseline' or "
            "never_fails=True"
        )
    for name, own in named.items():
        where = f"criterion {name!r} of @pytest.mark.trials"
        if name == BODY:
            raise MarkerError(f"{where} has the name of the body's own: call it otherwise")
        try:
            asked = _with_fields(_mapping(name, own))
        except MarkerError as error:
            raise MarkerError(f"criterion {name!r}: {error}") from None
        for key in asked:
            _check_key(key, tuple(_CRITERION), where)
        try:
            yield Criterion(name, body, **{**shared, **asked})
        except InvalidArgument as error:
            raise MarkerError(f"criterion {name!r}: {error}") from None


def _budget(given: object) -> Budget:
    if isinstance(given, Budget):
        return given
    keys = {word: key for key in setting_keys(Budget) for word in (key.field, key.name)}
    limits: dict[str, Any] = {}
    for word, value in _mapping("budget", given).items():
        _check_key(word, tuple(keys), "the budget of @pytest.mark.trials")
        limits[keys[word].field] = convert_python(keys[word].kind, value)
    return Budget(**limits)


def _parts(
    given: dict[str, Any], criteria: Sequence[Criterion], sampling: Sampling
) -> dict[str, Any]:
    """Return the other parts of the contract, which are read as a suite's are."""
    latency = given.get("latency")
    if isinstance(latency, Mapping):
        for key in latency:
            _check_key(key, _LATENCY, "the latency of @pytest.mark.trials")
    if not given:
        return {}
    from trialwise.suite.contract_parts import read_parts

    return read_parts(given, criteria, sampling.identifier or "inputs")
