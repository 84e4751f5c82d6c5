"""The reference page of the suite file: its keys, as they are described, below prose by hand."""

from __future__ import annotations

from pathlib import Path

from trialwise.declarations import structures
from trialwise.declarations.scalars import Kind
from trialwise.suite import check_keys
from trialwise.suite.keys import records
from trialwise.suite.suite_services import DeclaredService

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "suite.md"
#: Where the part begins that is written from the declarations.
_BEGIN = "## The whole file\n"


def render_suite_page() -> str:
    """Return the page with every key of a suite below the prose that somebody wrote."""
    prose = PAGE.read_text(encoding="utf-8").partition(_BEGIN)[0]
    found = {record.name: record for record in records()}
    suite, contract = found.pop("suite"), found.pop("contract")
    # What a contract may say as well is described there, once.
    shared = {key.name for key in contract.keys}
    own = tuple(key for key in suite.keys if key.name not in shared)
    described: dict[str, str] = {}
    parts = [
        f"{prose}{_BEGIN}\nEvery key of a [contract](#contract), and:\n",
        _list_keys("the-whole-file", own, described),
        *_section(contract, contract.keys, described),
    ]
    for record in found.values():
        if record.name == "criterion":
            for one in (record, check_keys.GRADER, check_keys.RUN_GRADER):
                own = tuple(key for key in one.keys if key.name not in check_keys.CHECK_KINDS)
                parts += _section(one, own, described)
            parts.append(_postconditions())
        else:
            parts += _section(record, record.keys, described)
    return "\n".join(parts)


def _section(
    record: structures.Record, keys: tuple[structures.Key, ...], described: dict[str, str]
) -> list[str]:
    about = f"## {record.name}\n\n{record.doc}{_rules(record)}\n"
    return [about, _list_keys(record.name, keys, described)]


def _rules(record: structures.Record) -> str:
    rules = [f"`{name}` is required." for name in record.required]
    unless = f", or none with `{record.unless}`" if record.unless else ""
    for group in record.one_of:
        is_check = structures.OTHERS in group and check_keys.CHECK_KINDS.keys() <= {*group}
        rules.append(
            "Exactly one check." if is_check else f"Exactly one of {_names(group)}{unless}."
        )
    if record.name == "criterion":
        rules.append("At least one check.")
    else:
        rules += [f"At least one of {_names(group)}." for group in record.some_of]
    return "".join(f" {rule}" for rule in rules)


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names if name != structures.OTHERS)


def _list_keys(section: str, keys: tuple[structures.Key, ...], described: dict[str, str]) -> str:
    """List the keys of a section; `described` says in which section a key was described before."""
    # A list and not a table: rows of four cells are cut off where a page is narrow.
    rows = {
        key.name: f"- **`{key.name}`** ({_value(key.kind)}"
        f"{f'; default: {key.default}' if key.default else ''}): {key.doc}\n"
        for key in keys
    }
    for other in dict.fromkeys(described[row] for row in rows.values() if row in described):
        repeated = tuple(name for name, row in rows.items() if described.get(row) == other)
        # A reader follows a link for several keys, not for one.
        if len(repeated) > 2:
            rows = {name: row for name, row in rows.items() if name not in repeated}
            rows[other] = f"- {_names(repeated)}: as in [{other}](#{other})\n"
    for row in rows.values():
        described.setdefault(row, section)
    return "".join(rows.values())


def _postconditions() -> str:
    rows = [
        "## Checks",
        "",
        "Write a check in a criterion by its name, or as an item of `postconditions`, `all_of`",
        "and `any_of`.",
        "Its value is the argument itself, or a mapping of arguments.",
        "",
    ]
    for kind in check_keys.CHECK_KINDS.values():
        arguments = ""
        if isinstance(kind, check_keys.DeclaredCheck) and kind.keys:
            arguments = f"; {', '.join(f'`{key.name}`' for key in kind.keys)}"
        rows.append(f"- **`{kind.name}`** ({kind.spelled}{arguments}): {kind.doc}")
    return "\n".join(rows) + "\n"


def _value(kind: Kind) -> str:
    """Return what a key may hold, with a link where that has a section of its own."""
    if isinstance(kind, DeclaredService):
        kind = kind.kind
    if isinstance(kind, structures.Record):
        return f"[{kind.name}](#{kind.name})"
    if isinstance(kind, structures.Short):
        return f"{_value(kind.first.kind)}, or [{kind.record.name}](#{kind.record.name})"
    if isinstance(kind, structures.Listing):
        return f"list of {_value(kind.item)}" if kind.item.spelled != "data" else "list"
    if isinstance(kind, structures.MapOf):
        return f"name: {_value(kind.kind)}"
    if isinstance(kind, structures.Either):
        return " or ".join(dict.fromkeys(_value(one) for one in kind.kinds))
    return kind.spelled or kind.expected


if __name__ == "__main__":
    print(render_suite_page(), end="")
