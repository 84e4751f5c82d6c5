"""The reference of the suite file, made from the description of its keys."""

from __future__ import annotations

import json

from trialwise.declarations import structures
from trialwise.declarations.scalars import Kind, Schema
from trialwise.suite import check_keys
from trialwise.suite.keys import SUITE, records
from trialwise.suite.suite_services import DeclaredService

_HEAD = """# The suite file

`trialwise.yaml` says which service is under test, which inputs it gets and what is promised of it.
trialwise looks for it in the current folder and then in each folder above. The
[glossary](../glossary.md) explains the words. The shortest useful suite has four lines:

```yaml
service: {python: "my_agent:answer"}
inputs: [What is 15 * 37?, Capital of Australia?]
criteria:
  - {name: answers, contains: "555", at_least: 90%}
```

If a suite has several contracts, put what they share at the top:

```yaml
services:
  small: {chat: {model: small-1, prices: {input: $0.15, output: $0.60}}}
  large: {chat: {model: large-1, prices: {input: $2.50, output: $10}}}
inputs: {jsonl: questions.jsonl}
max_trials: 200
budget: {money: $5, time: 10m}
criteria:
  - {name: valid-json, parses: json, at_least: 99%, origin: SLO}
  - {name: no-pii, not: {matches: '[0-9]{16}'}, never_fails: true}
contracts:
  - {name: small, service: small, tags: nightly}
  - {name: large, service: large, timeout: 30s}
```

Variants that you want to compare are `arms`:

```yaml
name: support
service: {chat: {model: small-1, system: You are a friendly assistant.}}
inputs: {jsonl: questions.jsonl}
criteria:
  - {name: right, contains: "555", at_least: 90%}
arms:
  short-prompt: {service: {chat: {system: Answer in one word.}}}
  large: {service: {chat: {model: large-1}}}
  no-prompt: {service: {chat: {system: null}}}
compare: {question: not-worse, margin: 2%}
```

- **YAML 1.2**: `no`, `1_000` and dates are texts. Anchors and `<<` work. Unknown keys, repeated
  keys and keys without a value are errors. All errors of the file are reported together, before
  anything runs.
- **A rate** is `0.95` or `95%`. **A time** has a unit: `500ms`, `30s`, `2m`, `1h`. **A pace** is
  `5/s` or `300/min`. **Money** is in US dollars: `$2` or `0.05`.
- **`${NAME}`** and **`${NAME:-default}`** are values of the environment. Write `$${` for the
  characters `${`. They work in services, paths, numbers and words. Their values are never written
  to a file: reports show `${NAME}`. They do not work in names and other texts that go into
  records. Inputs and the arguments of checks are data, in which `${` has no special meaning.
- **`include: file.yaml`** in a mapping adds the keys of another file. Keys in the mapping itself
  override them. `- include: file.yaml` in a list adds the items of another file. Paths are
  relative to the file with the `include`, and must stay within the suite's folder.
- **Paths** of inputs, recordings, reports and stores are relative to the suite's folder. Functions
  are imported from that folder, and only if the suite names them.
- **A key at the top** applies to every contract that does not have the key itself. A contract's
  own value replaces it completely. A contract's `trials` also replaces a `max_trials` from the
  top, and the other way round. The same applies to `inputs` and `samplings`.
- **Gates** (`reliability`, `stability`, `metrics`) set limits on numbers of repeated runs and have
  no error rate. They need a fixed number of runs: `trials`, with at least two for each input.
- **`models: [a, b]`** creates one contract for each model, with the name `name [model]`.
  `"{model}"`, in quotes, stands for the model in a service. A Python function gets it as the
  argument `model`.
- **`arms:`** names variants of a contract, such as another prompt, model or tool. Each says what
  it changes: mappings are joined key by key, a value replaces the contract's, and `null` takes it
  away. Inputs and criteria are the contract's. `trialwise compare` runs arms in turn with the
  contract, which is the control; `trialwise run` does not run them. An arm is called
  `contract/arm`, or `arm` where that is unique.

Editors can complete and check a suite if its first line names the schema. `trialwise schema`
prints it:

```yaml
# yaml-language-server: $schema=trialwise.schema.json
```
"""


def suite_reference(*, installed: bool = False) -> str:
    """Return the page, as Markdown.

    Args:
        installed: Whether to describe what other distributions declare, too.

    >>> suite_reference().splitlines()[0]
    '# The suite file'
    """
    found = {record.name: record for record in records()}
    suite, contract = found.pop("suite"), found.pop("contract")
    # What a contract may say as well is described there, once.
    shared = {key.name for key in contract.keys}
    own = tuple(key for key in suite.keys if key.name not in shared)
    described: dict[str, str] = {}
    parts = [
        _HEAD,
        "## The whole file\n\nEvery key of a [contract](#contract), and:\n",
        _list_keys("the-whole-file", own, described),
        *_section(contract, contract.keys, described),
    ]
    for record in found.values():
        if record.name == "criterion":
            for one in (record, check_keys.GRADER, check_keys.RUN_GRADER):
                own = tuple(key for key in one.keys if key.name not in check_keys.CHECK_KINDS)
                parts += _section(one, own, described)
            parts.append(_postconditions(installed))
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


def _postconditions(installed: bool) -> str:
    rows = [
        "## Checks",
        "",
        "Write a check in a criterion by its name, or as an item of `postconditions`, `all_of`",
        "and `any_of`.",
        "Its value is the argument itself, or a mapping of arguments.",
        "",
    ]
    more = [
        key.kind
        for key in check_keys.MORE_CHECKS.list_keys(structures.Definitions(installed=installed))
    ]
    for kind in (*check_keys.CHECK_KINDS.values(), *more):
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


# --- The suite file as JSON Schema 2020-12, for editors and for programs that write suites --------
#
# It describes one file as YAML reads it, before what it includes is taken in. What it refuses the
# loader refuses, too; the loader also sees what a schema cannot: a rate of 1, a module that is not
# there, two criteria of one name.

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def suite_schema(*, installed: bool = False) -> Schema:
    """Return the schema of a suite file.

    Args:
        installed: Whether to describe what other distributions declare, too.

    >>> suite_schema()["$schema"]
    'https://json-schema.org/draft/2020-12/schema'
    """
    defs = structures.Definitions(installed=installed)
    definition = SUITE.definition(defs)
    contract = {
        "allOf": [
            {"required": ["service"]},
            {"required": ["criteria"]},
            {"anyOf": [{"required": ["inputs"]}, {"required": ["samplings"]}]},
        ]
    }
    return {
        "$schema": _DIALECT,
        "title": "trialwise suite",
        **definition,
        "allOf": [
            {
                "if": {"required": ["contracts"]},
                "then": {"properties": {"name": False, "description": False}},
                "else": {"if": {"not": {"required": ["include"]}}, "then": contract},
            }
        ],
        "$defs": dict(sorted(defs.items())),
    }


def written_schema(*, installed: bool = False) -> str:
    """Return the schema as a file; the one that is shipped knows no other distributions."""
    return json.dumps(suite_schema(installed=installed), indent=1, ensure_ascii=False) + "\n"
