"""Every key of a suite file, once: what it may hold, what it means and what holds without it.

The loader, the JSON Schema and the reference are made from this description.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from trialwise.declarations.scalars import Choice, Duration, Kind, Label, PythonPath, Schema, Text
from trialwise.declarations.signatures import (
    Arg,
    Names,
    Seconds,
    Share,
    declare_record,
    derive_keys,
    setting_keys,
    summarise,
)
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
from trialwise.suite.inputs import INPUT_LIST, INPUTS, PATHS, SAMPLING
from trialwise.suite.loaded_suite import CompareSection
from trialwise.suite.suite_services import SERVICE, DeclaredService, ServiceChange

#: The clock gives their values, so that their kind says all.
_BY_CLOCK = (CovariateKind.WEEKDAY, CovariateKind.TIME_OF_DAY)
_PATH = Text("a path", environment="read")
_PATTERNS = Listing(
    Text("a regular expression", environment="kept"), "a list of regular expressions"
)
_PERCENTILES = Listing(Choice(*PERCENTILES), "a list of percentiles")


# --- What a criterion may say ------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionSection:
    """One promise about many trials.

    Args:
        name: The name in reports.
        postconditions: Checks that a reply must all pass. You can also write a check directly as a
            key.
        graders: Checks that grade a reply together, each with a weight. Takes `pass_at` or
            `mean_at_least`.
    """

    name: str
    postconditions: Annotated[Any, Arg(kind=POSTCONDITIONS)] = None
    graders: Annotated[Any, Arg(kind=GRADERS, elsewhere="rubrics scoring")] = None


_NAME, *_CHECKED = derive_keys(CriterionSection, texts="refused")
CRITERION = Record(
    "criterion",
    (_NAME, *setting_keys(Criterion), *_CHECKED, *check_keys()),
    one_of=(("at_least", "no_worse_than", "never_fails", "mean_at_least"),),
    unless="report_only",
    some_of=(("postconditions", "graders", *CHECK_KINDS, "*"),),
    more=MORE_CHECKS,
    doc=summarise(CriterionSection),
)


# --- How a run is made -------------------------------------------------------
class LatencySection:
    """Limits on the latency of successful trials.

    Args:
        p50: The limit of the 50th percentile.
        p90: The limit of the 90th percentile.
        p95: The limit of the 95th percentile.
        p99: The limit of the 99th percentile.
        baseline: Percentiles that use the baseline as their limit.
        enforced: Whether exceeding a limit FAILs the run.
        confidence: The confidence of the limits.
        sampling: The sampling of the contract to use.
    """

    p50: Seconds | None = None
    p90: Seconds | None = None
    p95: Seconds | None = None
    p99: Seconds | None = None
    baseline: Annotated[Any, Arg(kind=_PERCENTILES)] = None
    enforced: bool = False
    confidence: Share = 0.95
    sampling: str | None = None


LATENCY = declare_record("latency", LatencySection, some_of=((*PERCENTILES, "baseline"),))
CLAIM = Record("claim", derive_keys(Claim, texts="refused"), doc="What the verdict is about.")


class CovariateSection:
    """A condition that may change the rate. It is recorded and compared with the baseline's.

    Args:
        name: The name of the covariate.
        kind: The source of its value.
        value: The value of a region or a custom covariate.
        variable: The environment variable with the value.
        critical: Whether a baseline with another value cannot be used.
        window: The length of the windows of a time of day.
        zone: The time zone of a weekday or time of day.
    """

    name: str
    kind: CovariateKind = CovariateKind.CUSTOM
    value: Annotated[str | None, Arg(kind=Label())] = None
    variable: Annotated[str | None, Arg(key="environment")] = None
    critical: bool = False
    window: Annotated[float | None, Arg(kind=Duration(), default="4h")] = None
    zone: str | None = None


COVARIATE = declare_record("covariate", CovariateSection)


class FactorSection:
    """A factor with its value, from the environment or as the service says it.

    Args:
        value: The value, if it is not the service's own.
        variable: The environment variable whose value is recorded.
        critical: Whether a baseline measured with another value is refused.
    """

    value: Annotated[str | None, Arg(kind=Label())] = None
    variable: Annotated[str | None, Arg(key="environment")] = None
    critical: bool = False


FACTOR = declare_record("factor", FactorSection)
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

_SERVICES_ELSEWHERE = "provider providers target targets agent system_under_test"
_INPUTS_ELSEWHERE = "prompts tests cases test_cases dataset examples scenarios questions"
_CRITERIA_ELSEWHERE = "assert asserts assertions checks scorers evaluators expect expectations"
_CRITERIA = Listing(CRITERION, "a list of criteria")
_MODELS = Listing(Text("the name of a model"), "a list of models")
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
_SERVICE = Either(
    "a service, or the name of one", scalar=Text("the name of a service"), mapping=SERVICE
)
_SAME = "the arms of a contract have its inputs and criteria, so that they can be compared"


class ArmSection:
    """A variant of a contract, which says what it changes. Arms are compared and not run alone.

    Args:
        service: Keys of the service that change, another service, or the name of one. null takes a
            key away.
        factors: Factors that change.
        before_each: A function that is called before each trial, such as to reset what is under
            test. It takes any of `input`, `index` and `seed`. If it raises, the trial is not
            measured.
        description: A description for readers.
    """

    service: Annotated[Any, Arg(kind=ServiceChange())] = None
    factors: Annotated[Any, Arg(kind=_FACTORS)] = None
    before_each: Annotated[str | None, Arg(kind=PythonPath())] = None
    description: str | None = None


ARM = declare_record(
    "arm",
    ArmSection,
    some_of=(("service", "factors", "before_each"),),
    notes=dict.fromkeys(("inputs", "samplings", "criteria", "trials", "max_trials"), _SAME),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractSection:
    """A service and what is promised of it. Missing keys are taken from the top.

    Args:
        name: The name in reports and baselines.
        description: A description for readers.
        service: The service under test, or its name in `services`.
        inputs: The inputs for the service.
        samplings: Several lists of inputs, by name, instead of `inputs`.
        criteria: The criteria that the service must meet.
        graders: Checks that grade each run for `metrics` and `reliability`, and promise nothing.
        claim: What the verdict is about.
        covariates: Conditions that may change the rate.
        factors: What was under test, for the record: model, temperature and so on.
        latency: Limits on latency.
        reliability: A gate on repeated runs of each input.
        stability: A gate on how stable the sessions are.
        metrics: A gate on pass@k, pass^k and scores.
        models: Creates one contract for each model, called `name [model]`. `"{model}"` in the
            service stands for the model.
        arms: Variants to compare with the contract, by name, such as another prompt: `trialwise
            compare` runs them.
        activity: A function that says whether a reply shows any work.
        before_each: A function that is called before each trial, such as to reset what is under
            test. It takes any of `input`, `index` and `seed`. If it raises, the trial is not
            measured.
        prevalence: How often harmful content occurs before a guardrail.
        validity: How long baselines are valid. `measure` writes it into the baseline.
        tags: Tags for selecting contracts.
    """

    name: Annotated[str | None, Arg(default="what its service is called")] = None
    description: str | None = None
    service: Annotated[Any, Arg(kind=_SERVICE, elsewhere=_SERVICES_ELSEWHERE)] = None
    inputs: Annotated[Any, Arg(kind=INPUTS, elsewhere=_INPUTS_ELSEWHERE)] = None
    samplings: Annotated[Any, Arg(kind=_SAMPLINGS)] = None
    criteria: Annotated[Any, Arg(kind=_CRITERIA, elsewhere=_CRITERIA_ELSEWHERE)] = None
    graders: Annotated[Any, Arg(kind=RUN_GRADERS)] = None
    claim: Annotated[Any, Arg(kind=CLAIM, default="these inputs")] = None
    covariates: Annotated[Any, Arg(kind=_COVARIATES)] = None
    factors: Annotated[Any, Arg(kind=_FACTORS)] = None
    latency: Annotated[Any, Arg(kind=LATENCY)] = None
    reliability: Annotated[Any, Arg(kind=RELIABILITY)] = None
    stability: Annotated[Any, Arg(kind=STABILITY)] = None
    metrics: Annotated[Any, Arg(kind=METRICS)] = None
    models: Annotated[Any, Arg(kind=_MODELS)] = None
    arms: Annotated[Any, Arg(kind=MapOf(ARM, "arms by name"), elsewhere="variants variations")] = (
        None
    )
    activity: Annotated[str | None, Arg(kind=PythonPath())] = None
    before_each: Annotated[str | None, Arg(kind=PythonPath())] = None
    prevalence: Annotated[Any, Arg(kind=PREVALENCE)] = None
    validity: Annotated[Any, Arg(kind=VALIDITY)] = None
    tags: Annotated[Any, Arg(kind=Names())] = None


_KEYS = derive_keys(ContractSection, texts="refused")
#: How it is run stands between what is promised, up to the graders, and what else it says.
_CONTRACT = (*_KEYS[:7], *setting_keys(RunOptions), *_KEYS[7:])

#: Keys that people expect here, and where what they mean is said.
_ELSEWHERE = {
    "agents": "an agent is a service, `service: {agent: …}`, and contracts may name several "
    "under `services`",
    "pairwise": "variants are named under `arms`, and `trialwise compare` compares them",
}
CONTRACT = Record("contract", _CONTRACT, notes=_ELSEWHERE, doc=summarise(ContractSection))

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


class StoreSection:
    """Folders for runs and baselines, relative to the suite's folder.

    Args:
        runs: The folder for runs and journals.
        baselines: The folder for baselines.
    """

    runs: Annotated[str | None, Arg(kind=_PATH, default="`.trialwise`")] = None
    baselines: Annotated[str | None, Arg(kind=_PATH, default="`baselines`")] = None


STORE = declare_record("store", StoreSection)
COMPARE = Record(
    "compare",
    derive_keys(CompareSection, texts="refused"),
    doc="What `trialwise compare` asks where the command line does not say.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteSection:
    """One contract, or several with what they share.

    Args:
        contracts: Several contracts. The other keys then apply to all of them.
        services: Services that contracts refer to by name.
        compare: What `trialwise compare` asks.
        reports: Reports to write.
        store: Folders for runs and baselines.
        redact: Patterns that are removed from replies before they are stored or shown.
        env_file: Files with variables, one `NAME=value` a line. What the environment sets prevails.
    """

    contracts: Annotated[Any, Arg(kind=Listing(CONTRACT, "a list of contracts"))] = None
    services: Annotated[Any, Arg(kind=MapOf(SERVICE, "services by name"))] = None
    compare: Annotated[Any, Arg(kind=COMPARE)] = None
    reports: Annotated[Any, Arg(kind=REPORTS)] = None
    store: Annotated[Any, Arg(kind=STORE)] = None
    redact: Annotated[Any, Arg(kind=_PATTERNS)] = None
    env_file: Annotated[Any, Arg(kind=PATHS)] = None


SUITE = Record(
    "suite",
    (*_CONTRACT, *derive_keys(SuiteSection, texts="refused")),
    notes=_ELSEWHERE,
    doc=summarise(SuiteSection),
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

    # Depth first, so that the reference page describes a record near where it is used first.
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
