"""What a session is told by its command line, ini file and markers, and the budget it shares.

The command line beats the marker, the marker beats the ini file: a file says what is usual, a
marker what one test needs, and a person at a keyboard what is wanted today.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pytest

from _trialwise_pytest import SESSION, SETTINGS
from trialwise.catalogue import OPTIONS
from trialwise.declarations.amounts import describe_option, read_option
from trialwise.declarations.signatures import convert_python, setting_keys
from trialwise.declarations.signatures import settings_of as declared_settings
from trialwise.declarations.written import ValueRefused, suggest_name
from trialwise.engine.spending_meter import find_used_up
from trialwise.errors import InvalidArgument, TrialwiseError
from trialwise.model import Budget, Input, RunOptions, Sampling, StopReason
from trialwise.model.contract import MARKER_PARTS, PERCENTILES
from trialwise.model.criterion import Check, Criterion

_SIZES = ("trials", "max_trials")
#: The fields whose settings have another name.
_FIELDS = {name.replace("-", "_"): field for name, field, _, _ in OPTIONS}
_PER_TEST = [name.replace("-", "_") for name, _, _ in SETTINGS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A session's settings, resolved."""

    forced: Mapping[str, Any]
    """From the command line, by the marker's names."""
    usual: Mapping[str, Any]
    """From the ini file, for markers that say nothing."""
    budget: Budget
    """The budget of the whole session."""
    store: Path
    baselines: Path
    inconclusive: str
    html: Path | None
    summary: Path | None
    measure: bool
    resume: bool

    def merge(
        self, given: Mapping[str, Any], names: Collection[str] | None = None
    ) -> dict[str, Any]:
        """Merge the settings: the command line wins over the test, and the test over the ini file.

        Args:
            given: What the test says.
            names: The settings that count; all if None.
        """
        merged: dict[str, Any] = {}
        for source in (self.usual, given, self.forced):
            # A size replaces the other kind of size, too: two of them would contradict each other.
            if any(source.get(size) is not None for size in _SIZES):
                merged = {key: value for key, value in merged.items() if key not in _SIZES}
            kept = source.keys() if names is None or source is given else names
            merged |= {key: value for key, value in source.items() if key in kept}
        return merged


def settings_of(config: pytest.Config) -> Settings:
    """Return what a session is told.

    Raises:
        pytest.UsageError: A value is not what its setting takes.
    """
    forced: dict[str, Any] = {}
    usual: dict[str, Any] = {}
    for name, kind, _ in (*SETTINGS, *SESSION):
        word = name.replace("-", "_")
        given, written = config.getoption(f"trialwise_{word}"), config.getini(f"trialwise_{word}")
        if given is not None:
            forced[word] = _read(f"--trialwise-{name}", kind, given)
        if written not in (None, ""):
            usual[word] = _read(f"trialwise_{word}", kind, str(written))
    for known, sizes in (
        (forced, "--trialwise-trials and --trialwise-max-trials"),
        (usual, "trialwise_trials and trialwise_max_trials"),
    ):
        if known.keys() >= {*_SIZES}:
            raise pytest.UsageError(f"{sizes} exclude each other")
    said, root = {**usual, **forced}, config.rootpath
    limits = {name: said.get(f"budget_{name}") for name in ("trials", "usd", "seconds")}
    # A file on the command line is meant from the folder at hand, one in the ini file from there.
    files = {
        name: (config.invocation_params.dir if name in forced else root) / said[name]
        for name in ("html", "summary")
        if name in said
    }
    try:
        budget = Budget(**limits)
    except InvalidArgument as error:
        raise pytest.UsageError(f"the session's budget: {error}") from None
    return Settings(
        # What a marker may say, too, by the names of fields.
        forced={_FIELDS[word]: forced[word] for word in _PER_TEST if word in forced},
        usual={_FIELDS[word]: usual[word] for word in _PER_TEST if word in usual},
        budget=budget,
        store=root / (said.get("store") or ".trialwise"),
        baselines=root / (said.get("baselines") or "baselines"),
        inconclusive=said.get("inconclusive") or "fail",
        html=files.get("html"),
        summary=files.get("summary"),
        measure=config.getoption("trialwise_measure"),
        resume=config.getoption("trialwise_resume"),
    )


def _read(where: str, kind: str, text: str) -> Any:
    if kind.isupper():
        return text  # a folder or a file
    value = read_option(kind, text)
    if value is None:
        raise pytest.UsageError(f"{where} must be {describe_option(kind)}, got {text!r}")
    return (value,) if kind == "names" else value


# --- `@pytest.mark.trials(...)`: what it may say, and the criteria and options that it means -----
#
# A marker accepts every key that a suite's criterion and contract accept, by the name of the field
# or of the key, and amounts as a suite writes them: `at_least="90%"`, `budget={"time": "30s"}`.

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
    if declared_settings(RunOptions)[key.field].in_pytest and key.field != "budget"
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
        # A limit holds for everything, also for a criterion that asks every input.
        is_limited = any(one.at_least or one.never_fails for one in criteria)
        if chosen.get("max_trials") is not None and not is_limited:
            allowed = "go with at_least or never_fails: a baseline fixes the number of trials"
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
    """Return the other parts of the contract. A suite has the same keys."""
    latency = given.get("latency")
    if isinstance(latency, Mapping):
        for key in latency:
            _check_key(key, _LATENCY, "the latency of @pytest.mark.trials")
    if not given:
        return {}
    from trialwise.suite.contract_parts import read_parts

    return read_parts(given, criteria, sampling.identifier or "inputs")


# --- The budget of a whole session: all marked tests and all workers share its limits -------------
#
# Without workers it is a few numbers in memory. With pytest-xdist it is a small file that workers
# lock for the moment of a change: a trial is counted before it starts, so that two workers cannot
# both start the last one.


@dataclass(slots=True)
class _Spent:
    """What the session has taken so far."""

    began_s: float
    """When the first trial started, on the machine's monotonic clock."""
    trials: int = 0
    usd: float = 0.0


class SessionBudget:
    """What is left of a session's budget.

    Args:
        budget: The session's limits.
        file: Where workers share what was spent; None for a session of one process.
        clock: The machine's monotonic clock, which all its processes read alike.
    """

    def __init__(
        self,
        budget: Budget,
        file: Path | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._budget = budget
        self._is_limited = budget != Budget()
        self._file = file
        self._clock = clock
        self._own: _Spent | None = None

    def take(self) -> tuple[StopReason, str] | None:
        """Pay for the start of one trial; or which limit forbids it, in words too."""
        if not self._is_limited:
            return None
        with self._share_spending() as spent:
            # Looked at and taken under one lock, so that two workers cannot both start the last
            # trial.
            forbidden = self._find_used_up(spent)
            if forbidden is None:
                spent.trials += 1
            return forbidden

    def pay(self, usd: float | None, trials: int = 0) -> None:
        """Count what a trial cost, or a run that was made in one piece."""
        if self._is_limited and (usd or trials):
            with self._share_spending() as spent:
                spent.trials += trials
                spent.usd += usd or 0.0

    def remaining(self) -> Budget | None:
        """Return what a run made in one piece may take; None where nothing is left.

        A run without limits of its own is given these.
        """
        if not self._is_limited:
            return self._budget
        with self._share_spending() as spent:
            if self._find_used_up(spent) is not None:
                return None
            limit = self._budget
            gone_s = self._clock() - spent.began_s
            return Budget(
                trials=None if limit.trials is None else limit.trials - spent.trials,
                usd=None if limit.usd is None else limit.usd - spent.usd,
                seconds=None if limit.seconds is None else limit.seconds - gone_s,
            )

    def _find_used_up(self, spent: _Spent) -> tuple[StopReason, str] | None:
        return find_used_up(
            self._budget,
            trials=spent.trials,
            seconds=self._clock() - spent.began_s,
            usd=spent.usd,
            name="the session's budget",
        )

    @contextmanager
    def _share_spending(self) -> Iterator[_Spent]:
        if self._file is None:
            # The clock starts with the first trial: collecting may take long and costs nothing.
            self._own = self._own or _Spent(self._clock())
            yield self._own
            return
        import fcntl

        with self._file.open("a+", encoding="utf-8") as shared:
            # Read and written while the lock is held, so that no worker sees half of it.
            fcntl.flock(shared, fcntl.LOCK_EX)
            shared.seek(0)
            text = shared.read()
            spent = _Spent(**json.loads(text)) if text else _Spent(self._clock())
            yield spent
            shared.truncate(0)
            shared.write(json.dumps(asdict(spent)))
