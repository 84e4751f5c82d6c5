"""Options that commands share, how people write their values, and the help pages that list them.

Help pages load no statistics: kinds of values and settings stand in plain tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import partial, wraps
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import click

from trialwise.catalogue import OPTIONS
from trialwise.declarations import amounts
from trialwise.declarations.amounts import rate
from trialwise.declarations.signatures import read_arguments
from trialwise.reports.formats import list_endings, match_format
from trialwise.runtime.selecting import BadExpression, Changes, Matcher, Selection, parse_expression

F = TypeVar("F", bound=Callable[..., Any])

# --- Values ---------------------------------------------------------------------------------------


def refusal(name: str, value: object, allowed: str) -> click.ClickException:
    """Return the error for a value: which option, what is allowed, what was given."""
    return click.ClickException(f"{name} must {allowed}, got {value}")


def option_name(param: click.Parameter | None) -> str:
    """Return a parameter as its user writes it: --price, or RATE for an argument."""
    if param is None:
        return "the value"
    if isinstance(param, click.Option):
        return max(param.opts, key=len)
    return param.make_metavar(click.get_current_context())


class Written(click.ParamType[Any]):
    """A value read from what was written, exactly: 90% is 9/10, not nine tenths of a double.

    Args:
        name: What a help page calls it.
        allowed: What must be written, as the rest of a sentence after "must".
        read: The value of a text, or None where the text is not one.
    """

    def __init__(self, name: str, allowed: str, read: Callable[[str], object | None]) -> None:
        self.name = name
        self._allowed = allowed
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read what was written."""
        if not isinstance(value, str):
            return value
        result = self._read(value.strip())
        if result is None:
            name = option_name(param) if ctx else "the value"
            raise refusal(name, repr(value), self._allowed)
        return result


def _read_percentile(text: str) -> float | None:
    digits = text.removeprefix("p")
    value = amounts.number(digits)
    # From 1 on it counts hundredths, with or without their sign.
    return rate(digits if value is None or value < 1 else f"{digits}%")


def _read_duration(text: str) -> float | None:
    return amounts.duration(text, bare=True)


def _read_successes(text: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"(\d{1,9})\s*/\s*(\d{1,9})", text)
    if found is None or not int(found[1]) <= int(found[2]) > 0:
        return None
    return int(found[1]), int(found[2])


def read_rates(text: str, separator: str = ":") -> tuple[float, ...] | None:
    """Read rates, such as those expected of the control and of the candidate.

    >>> read_rates("80%:90%"), read_rates("90%, 80%, 70%", ","), read_rates("high")
    ((0.8, 0.9), (0.9, 0.8, 0.7), None)
    """
    found = [rate(part.strip()) for part in text.split(separator)]
    if any(one is None or not 0 <= one <= 1 for one in found):
        return None
    return tuple(float(one) for one in found if one is not None)


def _read_two_rates(text: str) -> tuple[float, ...] | None:
    found = read_rates(text) or ()
    return found if len(found) == 2 and all(0 < one < 1 for one in found) else None


def _read_trials(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,9}", text) and int(text) > 0 else None


#: `--limit` alone asks for a limit without naming it.
UNNAMED_LIMIT = "unnamed"
_TIME = "be a time above 0, such as 3s, 500ms, 2m or a number of seconds"
_DOLLARS = "be an amount in dollars above 0, such as 0.02 or $0.02"
_OF_TRIALS = "be successes of at least as many trials, such as 951/1000"

RATE = Written("rate", "be a rate such as 90% or 0.9", rate)
PERCENTILE = Written("percentile", "be a percentile such as 95, p95 or 0.95", _read_percentile)
USD = Written("usd", _DOLLARS, lambda text: amounts.money(text) or None)
DURATION = Written("time", _TIME, _read_duration)
LIMIT = Written("time", _TIME, lambda text: 0.0 if text == UNNAMED_LIMIT else _read_duration(text))
SUCCESSES = Written("k/n", _OF_TRIALS, _read_successes)
TRIALS = Written("n", "be a whole number of at least 1", _read_trials)
RATES = Written("rate:rate", "be two rates such as 80%:90%", _read_two_rates)
ARM_RATES = Written(
    "rate:rate",
    "be two rates such as 80%:90%, or one for each arm",
    lambda text: read_rates(text.replace(",", ":")),
)
#: The questions of a comparison, written out: a help page loads no statistics.
QUESTIONS = ("different", "better", "not-worse", "equivalent")
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)


# --- Options that a class declares ----------------------------------------------------------------


def opt(*names: str, **more: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Say of a field what its type does not say of the option: the arguments of `click.option`."""
    return names, more


def declared(owner: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options of `add_options`; the function takes an object of the class as `how`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(**given: Any) -> Any:
            how = owner(**{one.name: given.pop(one.name) for one in fields(owner)})
            return function(how=how, **given)

        return add_options(owner)(call)

    return decorate


def add_options(owner: type) -> Callable[[F], F]:
    """Add an option for each field of a dataclass, described by its docstring."""
    hints, described = get_type_hints(owner, include_extras=True), read_arguments(owner)

    def decorate(function: F) -> F:
        for one in reversed(fields(owner)):
            if one.name in _SHARED:
                function = _SHARED[one.name](function)
                continue
            # Help pages set off a default by two spaces.
            said = described.get(one.name, "").replace(" [default: ", "  [default: ")
            usual = {"help": said or None, "required": one.default is MISSING}
            usual |= {} if one.default is MISSING else {"default": one.default}
            function = _build_option(one.name, hints[one.name], usual)(function)
        return function

    return decorate


def _build_option(name: str, hint: Any, usual: dict[str, Any]) -> Callable[[Any], Any]:
    names, more = opt()
    if get_origin(hint) is Annotated:
        hint, (names, more) = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        hint = get_args(hint)[0]  # None only says that it may be left out, and stands last
    if hint is bool:
        usual["is_flag"] = True
    elif get_origin(hint) is tuple:
        usual["multiple"] = True
    elif get_origin(hint) is Literal:
        usual["type"] = click.Choice(get_args(hint))
    else:
        usual["type"] = FILE if hint is Path else hint
    names = names or (f"--{name.replace('_', '-')}",)
    return click.option(*names, name, **{**usual, **more})


# --- Help pages -----------------------------------------------------------------------------------


class GroupedCommand(click.Command):
    """A command whose help page lists its everyday options in groups, and a second page all.

    Args:
        groups: The names of the parameters of each group.
    """

    def __init__(self, *args: Any, groups: Mapping[str, str], **more: Any) -> None:
        super().__init__(*args, **more)
        self._groups = {title: names.split() for title, names in groups.items()}
        page = click.Option(
            ["--help-all"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=self._show_all,
            help="Show every option and setting.",
        )
        self.params.append(page)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups; on the second page also the other options and the settings."""
        params = {one.name: one for one in self.get_params(ctx)}
        shown = {title: [params.pop(one) for one in names] for title, names in self._groups.items()}
        short, is_whole = self.get_help_option(ctx), ctx.meta.get(_WHOLE)
        pages = [one for one in params.values() if one is short or one.name == "help_all"]
        if is_whole:
            more = [one for one in params.values() if one not in pages]
            shown["More"] = [one for one in more if isinstance(one, click.Option)]
        for title, several in {**shown, "Help": pages}.items():
            rows = [row for one in several if (row := one.get_help_record(ctx)) is not None]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        if is_whole and "settings" in {one.name for one in self.params}:
            with formatter.section("Settings of the suite, and of --set KEY=VALUE"):
                # What has no option to be shown is changed by `--set` alone.
                known = (*_EVERYDAY, *_NO_OPTION)
                rows = [(_key(name), doc) for name, _, _, doc in OPTIONS if name not in known]
                formatter.write_dl(rows)

    @staticmethod
    def _show_all(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted:
            ctx.meta[_WHOLE] = True
            click.echo(ctx.get_help())
            ctx.exit()


#: Marks the context of a command that shows its second help page.
_WHOLE = "trialwise.help_all"


# --- Which contracts, and how they run ------------------------------------------------------------

suite_option = click.option(
    "-s",
    "--suite",
    "file",
    type=FILE,
    help="The suite file. Default: trialwise.yaml in this folder or above.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
store_option = click.option(
    "--store", type=FOLDER, help="Folder of the runs. Default: the suite's, else .trialwise."
)
criterion_option = click.option(
    "--criterion",
    "criteria",
    multiple=True,
    metavar="NAME",
    help="Only this criterion, without latency and gates; may be repeated.",
)
input_option = click.option(
    "--input", "inputs", multiple=True, help="Only this input; may be repeated."
)
set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any other setting of the suite, such as rule=wilson; may be repeated.",
)


def _read_expression(_: click.Context, __: click.Parameter, text: str | None) -> Matcher | None:
    if text is None:
        return None
    try:
        return parse_expression(text)
    except BadExpression as error:
        raise click.BadParameter(f"{error}, in `{text}`") from None


_SELECTING = (
    click.argument("names", nargs=-1, metavar="[CONTRACT]..."),
    click.option(
        "-s",
        "--suite",
        "files",
        multiple=True,
        type=FILE,
        help="A suite file; may be repeated. Default: trialwise.yaml in this folder or above.",
    ),
    click.option(
        "-k",
        "expression",
        metavar="EXPR",
        callback=_read_expression,
        help='Only contracts whose name or tag matches, as in "support and not slow".',
    ),
    click.option("--tag", "tags", multiple=True, help="Only contracts with this tag."),
)


def selection(function: F) -> F:
    """Add the arguments that select contracts; the function takes them as `selected`."""

    @wraps(function)
    def call(**given: Any) -> Any:
        names = ("names", "files", "expression", "tags")
        chosen = {name: given.pop(name) for name in names}
        changes = read_changes(given)
        for name in (*map(_parameter, _NAMES), "criteria", "inputs"):
            given.pop(name, None)
        selected = Selection(**chosen, settings=given.pop("settings", ()), changes=changes)
        return function(selected=selected, **given)

    for decorate in reversed(_SELECTING):
        call = decorate(call)
    return call  # type: ignore[return-value]


def read_changes(given: Mapping[str, Any]) -> Changes:
    """Return what the options of a command line change about runs."""
    options: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for name, target, _, _ in OPTIONS:
        value = given.get(_parameter(name))
        if value is not None and value != ():
            holder, _, field = target.rpartition(".")
            (limits if holder == "budget" else options)[field] = value
    return Changes(
        options=options,
        limits=limits,
        criteria=tuple(given.get("criteria") or ()),
        inputs=tuple(given.get("inputs") or ()),
    )


_NAMES = tuple(name for name, *_ in OPTIONS)
#: Settings that change from run to run have an option; the others are changed by `--set`.
_EVERYDAY = (
    *("trials", "max-trials", "intent", "seed", "concurrency", "executor"),
    *("max-seconds", "max-usd", "baseline", "override"),
)
#: Each criterion has its own confidence, and `inconclusive` is `--fail-on-inconclusive`.
_NO_OPTION = ("confidence", "inconclusive")
#: Options that only act on decisions.
_DECIDING = (
    *("confidence", "max-trials", "intent", "rule", "analysis", "override", "baseline"),
    *("horizon", "correction", "family", "family-size", "smoke-refuses", "inconclusive"),
)


def _add_options(function: F, *, leave_out: Sequence[str]) -> F:
    for name, _, kind, doc in reversed(OPTIONS):
        if name not in leave_out:
            function = click.option(
                f"--{name}",
                _parameter(name),
                type=_type_of(kind),
                multiple=kind == "names",
                default=None,
                help=doc,
                hidden=name not in _EVERYDAY,
                callback=None if name in _EVERYDAY else _say_replaced,
            )(function)
    return set_option(function)


#: Adds an option for each setting of a run that the command line may change.
size_options = partial(_add_options, leave_out=_NO_OPTION)
#: Adds the options of a run that decides nothing: its size, its pace and its limits.
pace_options = partial(_add_options, leave_out=_DECIDING)
#: Adds the options of arms that take turns: their pace and their limits.
pair_options = partial(_add_options, leave_out=("trials", *_DECIDING))


def _say_replaced(_: click.Context, param: click.Parameter, value: Any) -> Any:
    """Say on standard error what took the place of an option, which works in this version."""
    if value is not None:
        name = option_name(param).removeprefix("--")
        click.echo(f"trialwise: --{name} is now --set {_key(name)}=…", err=True)
    return value


def _key(option: str) -> str:
    return option.replace("-", "_")


def _parameter(name: str) -> str:
    return f"option_{_key(name)}"


def _type_of(kind: str) -> click.ParamType[Any]:
    if "|" in kind:
        return click.Choice(kind.split("|"), case_sensitive=False)
    if kind in ("text", "names"):
        return click.STRING
    # A value is read as suites and markers read it.
    return Written(
        kind.split(maxsplit=1)[0],
        f"be {amounts.describe_option(kind)}",
        partial(amounts.read_option, kind),
    )


# --- Files that are written -----------------------------------------------------------------------


def build_output_option(
    check: Callable[[Path], object], endings: Sequence[str], what: str = "Write a report"
) -> Callable[[Any], Any]:
    """Build `-o`, by which a command writes files whose names say their formats.

    Args:
        check: Raises where a name asks for no such report, before anything is read or run.
        endings: What the help lists.
        what: What the help says that the command does.
    """

    def check_names(
        _: click.Context, __: click.Parameter, paths: tuple[Path, ...]
    ) -> tuple[Path, ...]:
        for path in paths:
            check(path)
        return paths

    return click.option(
        "-o",
        "--output",
        "outputs",
        multiple=True,
        type=FILE,
        callback=check_names,
        help=f"{what}: {' '.join(endings)}; may be repeated.",
    )


def require_folder(path: Path) -> None:
    """Refuse a file in a folder that is not there."""
    if not path.parent.is_dir():
        raise click.FileError(str(path), f"there is no folder {path.parent}")


output_option = build_output_option(
    match_format, list_endings(), "Write a report, by name or extension"
)
#: Options that several commands have, by the fields that hold them.
_SHARED = {
    "as_json": json_option,
    "outputs": output_option,
    "quiet": quiet_option,
    "store": store_option,
    "file": suite_option,
}
