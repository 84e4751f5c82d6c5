"""Every key of a suite file, once: what it may hold, what it means and what holds without it.

The loader, the JSON Schema and the reference are made from this description.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from trialwise.declarations.scalars import (
    Choice,
    Duration,
    Flag,
    Kind,
    Label,
    PythonPath,
    Rate,
    Schema,
    Text,
)
from trialwise.declarations.signatures import Names, derive_keys, setting_keys
from trialwise.declarations.structures import (
    Definitions,
    Either,
    Key,
    Listing,
    MapOf,
    More,
    Record,
    Short,
)
from trialwise.extensions import REPORTERS, extension_names
from trialwise.model.baseline import CovariateKind
from trialwise.model.claim import Claim
from trialwise.model.contract import PERCENTILES, Prevalence, Validity
from trialwise.model.criterion import Criterion
from trialwise.model.options import RunOptions
from trialwise.reports.formats import BUILT_IN, ReportFormat, find_other_format
from trialwise.suite.check_keys import (
    CHECK_KINDS,
    GRADERS,
    MORE_CHECKS,
    POSTCONDITIONS,
    RUN_GRADERS,
    check_keys,
)
from trialwise.suite.gates import METRICS, RELIABILITY, STABILITY
from trialwise.suite.inputs import INPUT_LIST, INPUTS, SAMPLING
from trialwise.suite.loaded_suite import CompareSection
from trialwise.suite.suite_services import SERVICE, DeclaredService, ServiceChange

#: The clock gives their values, so that their kind says all.
_BY_CLOCK = (CovariateKind.WEEKDAY, CovariateKind.TIME_OF_DAY)
_PATH = Text("a path", environment="read")
_NAMES = Names()
# --- What a criterion may say ------------------------------------------------
CRITERION = Record(
    "criterion",
    (
        Key("name", Text(), "The name in reports."),
        *setting_keys(Criterion),
        Key(
            "postconditions",
            POSTCONDITIONS,
            "Checks that a reply must all pass. You can also write a check directly as a key.",
        ),
        Key(
            "graders",
            GRADERS,
            "Checks that grade a reply together, each with a weight. Takes `pass_at` or "
            "`mean_at_least`.",
            elsewhere="rubrics scoring",
        ),
        *check_keys(),
    ),
    required=("name",),
    one_of=(("at_least", "no_worse_than", "never_fails", "mean_at_least"),),
    unless="report_only",
    some_of=(("postconditions", "graders", *CHECK_KINDS, "*"),),
    more=MORE_CHECKS,
    doc="One promise about many trials.",
)
# --- How a run is made -------------------------------------------------------
LATENCY = Record(
    "latency",
    (
        *(Key(one, Duration(), f"The limit of the {one[1:]}th percentile.") for one in PERCENTILES),
        Key(
            "baseline",
            Listing(Choice(*PERCENTILES), "a list of percentiles"),
            "Percentiles that use the baseline as their limit.",
        ),
        Key("enforced", Flag(), "Whether exceeding a limit FAILs the run.", default="false"),
        Key("confidence", Rate(), "The confidence of the limits.", default="95%"),
        Key("sampling", Text(), "The sampling of the contract to use."),
    ),
    some_of=((*PERCENTILES, "baseline"),),
    doc="Limits on the latency of successful trials.",
)
CLAIM = Record("claim", derive_keys(Claim, texts="refused"), doc="What the verdict is about.")
COVARIATE = Record(
    "covariate",
    (
        Key("name", Text(), "The name of the covariate."),
        Key("kind", Choice(*CovariateKind), "The source of its value.", default="custom"),
        Key("value", Label(), "The value of a region or a custom covariate."),
        Key("environment", Text(), "The environment variable with the value."),
        Key(
            "critical",
            Flag(),
            "Whether a baseline with another value cannot be used.",
            default="false",
        ),
        Key("window", Duration(), "The length of the windows of a time of day.", default="4h"),
        Key("zone", Text(), "The time zone of a weekday or time of day."),
    ),
    required=("name",),
    doc="A condition that may change the rate. It is recorded and compared with the baseline's.",
)
FACTOR = Record(
    "factor",
    (
        Key("value", Label(), "The value, if it is not the service's own."),
        Key("environment", Text(), "The environment variable whose value is recorded."),
        Key(
            "critical",
            Flag(),
            "Whether a baseline measured with another value is refused.",
            default="false",
        ),
    ),
    doc="A factor with its value, from the environment or as the service says it.",
)
PREVALENCE = Record(
    "prevalence",
    derive_keys(Prevalence, texts="refused"),
    doc="How often harmful content occurs before a guardrail.",
)
VALIDITY = Record(
    "validity",
    derive_keys(Validity),
    doc="How long baselines of the contract are valid after they were measured.",
)

_COVARIATES = Listing(
    Either("a covariate", scalar=Choice(*_BY_CLOCK), mapping=COVARIATE), "a list of covariates"
)
_FACTORS = MapOf(
    Either(
        "text, a number, `{environment: NAME}` or `{value: TEXT, critical: true}`",
        scalar=Label(),
        mapping=FACTOR,
    ),
    "factors by name",
)
_SAMPLINGS = MapOf(
    Either("inputs or a sampling", listing=INPUT_LIST, mapping=SAMPLING), "samplings by name"
)
_BEFORE_EACH = Key(
    "before_each",
    PythonPath(),
    "A function that is called before each trial, such as to reset what is under test. It "
    "takes any of `input`, `index` and `seed`. If it raises, the trial is not measured.",
)
_DESCRIPTION = Key("description", Text(), "A description for readers.")
_SAME = "the arms of a contract have its inputs and criteria, so that they can be compared"
ARM = Record(
    "arm",
    (
        Key(
            "service",
            ServiceChange(),
            "Keys of the service that change, another service, or the name of one. null takes a "
            "key away.",
        ),
        Key("factors", _FACTORS, "Factors that change."),
        _BEFORE_EACH,
        _DESCRIPTION,
    ),
    some_of=(("service", "factors", "before_each"),),
    notes=dict.fromkeys(("inputs", "samplings", "criteria", "trials", "max_trials"), _SAME),
    doc="A variant of a contract, which says what it changes. Arms are compared and not run alone.",
)
_SHARED = (
    Key(
        "service",
        Either(
            "a service, or the name of one", scalar=Text("the name of a service"), mapping=SERVICE
        ),
        "The service under test, or its name in `services`.",
        elsewhere="provider providers target targets agent system_under_test",
    ),
    Key(
        "inputs",
        INPUTS,
        "The inputs for the service.",
        elsewhere="prompts tests cases test_cases dataset examples scenarios questions",
    ),
    Key("samplings", _SAMPLINGS, "Several lists of inputs, by name, instead of `inputs`."),
    Key(
        "criteria",
        Listing(CRITERION, "a list of criteria"),
        "The criteria that the service must meet.",
        elsewhere="assert asserts assertions checks scorers evaluators expect expectations",
    ),
    Key(
        "graders",
        RUN_GRADERS,
        "Checks that grade each run for `metrics` and `reliability`, and promise nothing.",
    ),
    *setting_keys(RunOptions),
    Key("claim", CLAIM, "What the verdict is about.", default="these inputs"),
    Key("covariates", _COVARIATES, "Conditions that may change the rate."),
    Key("factors", _FACTORS, "What was under test, for the record: model, temperature and so on."),
    Key("latency", LATENCY, "Limits on latency."),
    Key("reliability", RELIABILITY, "A gate on repeated runs of each input."),
    Key("stability", STABILITY, "A gate on how stable the sessions are."),
    Key("metrics", METRICS, "A gate on pass@k, pass^k and scores."),
    Key(
        "models",
        Listing(Text("the name of a model"), "a list of models"),
        'Creates one contract for each model, called `name [model]`. `"{model}"` in the service '
        "stands for the model.",
    ),
    Key(
        "arms",
        MapOf(ARM, "arms by name"),
        "Variants to compare with the contract, by name, such as another prompt: "
        "`trialwise compare` runs them.",
        elsewhere="variants variations",
    ),
    Key("activity", PythonPath(), "A function that says whether a reply shows any work."),
    _BEFORE_EACH,
    Key("prevalence", PREVALENCE, "How often harmful content occurs before a guardrail."),
    Key(
        "validity", VALIDITY, "How long baselines are valid. `measure` writes it into the baseline."
    ),
    Key("tags", _NAMES, "Tags for selecting contracts."),
)
_OWN = (
    Key("name", Text(), "The name in reports and baselines.", default="what its service is called"),
    _DESCRIPTION,
)

#: Keys that people expect here, and where what they mean is said.
_ELSEWHERE = {
    "agents": "an agent is a service, `service: {agent: …}`, and contracts may name several "
    "under `services`",
    "pairwise": "variants are named under `arms`, and `trialwise compare` compares them",
}
CONTRACT = Record(
    "contract",
    (*_OWN, *_SHARED),
    notes=_ELSEWHERE,
    doc="A service and what is promised of it. Missing keys are taken from the top.",
)

# --- The file ----------------------------------------------------------------


def _report_key(report: ReportFormat) -> Key:
    return Key(report.key, _PATH, f"Where to write {report.summary}.")


def _find_report_key(name: str) -> Key | None:
    """Find the key of a format that another distribution declares."""
    found = find_other_format(name)
    return None if found is None else _report_key(found)


REPORTS = Record(
    "reports",
    tuple(map(_report_key, BUILT_IN.values())),
    doc="Files to write after each run, relative to the suite's folder.",
    more=More(_find_report_key, lambda: extension_names(REPORTERS)),
)
STORE = Record(
    "store",
    (
        Key("runs", _PATH, "The folder for runs and journals.", default="`.trialwise`"),
        Key("baselines", _PATH, "The folder for baselines.", default="`baselines`"),
    ),
    doc="Folders for runs and baselines, relative to the suite's folder.",
)
COMPARE = Record(
    "compare",
    derive_keys(CompareSection, texts="refused"),
    doc="What `trialwise compare` asks where the command line does not say.",
)
SUITE = Record(
    "suite",
    (
        *_OWN,
        *_SHARED,
        Key(
            "contracts",
            Listing(CONTRACT, "a list of contracts"),
            "Several contracts. The other keys then apply to all of them.",
        ),
        Key(
            "services",
            MapOf(SERVICE, "services by name"),
            "Services that contracts refer to by name.",
        ),
        Key("compare", COMPARE, "What `trialwise compare` asks."),
        Key("reports", REPORTS, "Reports to write."),
        Key("store", STORE, "Folders for runs and baselines."),
        Key(
            "redact",
            Listing(
                Text("a regular expression", environment="kept"), "a list of regular expressions"
            ),
            "Patterns that are removed from replies before they are stored or shown.",
        ),
        Key(
            "env_file",
            Either(
                "a path or a list of paths", scalar=_PATH, listing=Listing(_PATH, "a list of paths")
            ),
            "Files with variables, one `NAME=value` a line. What the environment sets prevails.",
        ),
    ),
    notes=_ELSEWHERE,
    doc="One contract, or several with what they share.",
)


def records() -> list[Record]:
    """Return every record of the description, the suite first, each once."""
    found: dict[str, Record] = {}

    def walk(kind: Kind) -> Iterator[Kind]:
        if isinstance(kind, Record) and kind.name not in found:
            found[kind.name] = kind
            yield from (key.kind for key in kind.keys)
        elif isinstance(kind, Either):
            yield from kind.kinds
        elif isinstance(kind, Listing):
            yield kind.item
        elif isinstance(kind, MapOf):
            yield kind.kind
        elif isinstance(kind, Short):
            yield kind.record
        elif isinstance(kind, DeclaredService):
            yield kind.kind

    waiting: list[Kind] = [SUITE]
    while waiting:
        waiting[:1] = [*walk(waiting[0])]
    return list(found.values())


def homes(key: str) -> list[str]:
    """Return the records that have a key of this name, or one that others call so."""
    return [
        record.name
        for record in records()
        if any(key == one.name or key in one.elsewhere.split() for one in record.keys)
    ]


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
    defs = Definitions(installed=installed)
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
