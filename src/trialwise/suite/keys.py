"""Every key of a suite file, once: what it may hold, what it means and what holds without it.

The loader, the JSON Schema and the reference are made from this description.
"""

from __future__ import annotations

from collections.abc import Iterator

from trialwise.declarations.quantities import Duration, Rate
from trialwise.declarations.scalars import (
    Choice,
    Flag,
    Kind,
    Label,
    PythonPath,
    Text,
)
from trialwise.declarations.settings import Names, setting_keys
from trialwise.declarations.structures import Either, Key, Listing, MapOf, Record, Short
from trialwise.model.claim import Estimator, PopulationClaim, TargetEstimand
from trialwise.model.contract import PERCENTILES
from trialwise.model.covariate import CovariateKind
from trialwise.model.criterion import Criterion
from trialwise.model.options import RunOptions
from trialwise.suite.check_keys import CHECK_KINDS, MORE_CHECKS, POSTCONDITIONS, check_keys
from trialwise.suite.gate_keys import METRICS, RELIABILITY, STABILITY
from trialwise.suite.input_keys import INPUT_LIST, INPUTS, SAMPLING
from trialwise.suite.service_keys import SERVICE, DeclaredService

__all__ = ["CONTRACT", "CRITERION", "SUITE", "homes", "records"]

#: The clock gives their values, so that their kind says all.
_BY_CLOCK = (CovariateKind.WEEKDAY, CovariateKind.TIME_OF_DAY)
_PATH = Text("a path", environment="read")
_NAMES = Names()

# --- What a criterion may say ------------------------------------------------

CRITERION = Record(
    "criterion",
    (
        Key("name", Text(), "How reports call it."),
        *setting_keys(Criterion),
        Key(
            "postconditions",
            POSTCONDITIONS,
            "What a reply must satisfy, all of it; or written directly, by name.",
        ),
        *check_keys(),
    ),
    required=("name",),
    one_of=(("at_least", "no_worse_than", "never_fails"),),
    some_of=(("postconditions", *CHECK_KINDS, "*"),),
    more=MORE_CHECKS,
    doc="One claim judged over many trials.",
)

# --- How a run is made -------------------------------------------------------

LATENCY = Record(
    "latency",
    (
        *(Key(one, Duration(), f"The limit of the {one[1:]}th percentile.") for one in PERCENTILES),
        Key(
            "baseline",
            Listing(Choice(*PERCENTILES), "a list of percentiles"),
            "Percentiles whose limits the baseline gives.",
        ),
        Key("enforced", Flag(), "Whether a breach FAILs the run.", default="false"),
        Key("confidence", Rate(), "How sure a breach is.", default="95%"),
        Key("sampling", Text(), "Over which of the contract's samplings."),
    ),
    some_of=((*PERCENTILES, "baseline"),),
    doc="How long successful trials may take.",
)
CLAIM = Record(
    "claim",
    (
        Key(
            "population",
            Choice(*PopulationClaim),
            "How far the evidence reaches.",
            default="fixed-inputs",
        ),
        Key("name", Text(), "Which population a superpopulation claim is about."),
        Key("representativeness", Text(), "Why the inputs are taken to represent it."),
        Key(
            "estimand",
            Choice(*TargetEstimand),
            "Which rate is estimated where inputs are not alike.",
            default="call-weighted",
        ),
        Key(
            "estimator",
            Choice(*Estimator),
            "An estimator that takes inputs as the sampled units.",
            default="the binomial rule",
        ),
    ),
    doc="What the verdict is about.",
)
COVARIATE = Record(
    "covariate",
    (
        Key("name", Text(), "What it is called."),
        Key(
            "kind",
            Choice(*CovariateKind),
            "Where its value comes from.",
            default="custom",
        ),
        Key("value", Label(), "Of a region or a custom covariate."),
        Key("environment", Text(), "The environment variable that holds the value."),
        Key(
            "critical",
            Flag(),
            "Whether a baseline measured under another value is no reference.",
            default="false",
        ),
        Key("window", Duration(), "The windows of a time of day.", default="4h"),
        Key("zone", Text(), "The time zone of a weekday or time of day."),
    ),
    required=("name",),
    doc="A condition that may move the rate, recorded and compared with the baseline's.",
)
FACTOR = Record(
    "factor",
    (Key("environment", Text(), "The environment variable whose value is recorded."),),
    required=("environment",),
    doc="A factor that is read from the environment, on purpose: its value is recorded.",
)
PREVALENCE = Record(
    "prevalence",
    (
        Key("rate", Rate(), "How often the generator proposes harmful content."),
        Key("confidence", Rate(), "At which the rate is an upper bound.", default="known"),
        Key("evidence", Text(), "Where the number comes from."),
    ),
    required=("rate",),
    doc="Of harmful content before a guardrail.",
)

_COVARIATES = Listing(
    Either("a covariate", scalar=Choice(*_BY_CLOCK), mapping=COVARIATE),
    "a list of covariates",
)
_FACTORS = MapOf(
    Either("text, a number or `{environment: NAME}`", scalar=Label(), mapping=FACTOR),
    "factors by name",
)
_SAMPLINGS = MapOf(
    Either("inputs or a sampling", listing=INPUT_LIST, mapping=SAMPLING), "samplings by name"
)
_SHARED = (
    Key(
        "service",
        Either(
            "a service, or the name of one", scalar=Text("the name of a service"), mapping=SERVICE
        ),
        "What is under test, or its name in `services`.",
        elsewhere="provider providers target targets agent system_under_test",
    ),
    Key(
        "inputs",
        INPUTS,
        "What the service is asked.",
        elsewhere="prompts tests cases test_cases dataset examples scenarios questions",
    ),
    Key("samplings", _SAMPLINGS, "Several lists of inputs, by name, instead of `inputs`."),
    Key(
        "criteria",
        Listing(CRITERION, "a list of criteria"),
        "What is promised.",
        elsewhere="assert asserts assertions checks scorers evaluators expect expectations",
    ),
    *setting_keys(RunOptions),
    Key("claim", CLAIM, "What the verdict is about.", default="these inputs"),
    Key("covariates", _COVARIATES, "Conditions that may move the rate."),
    Key("factors", _FACTORS, "What was under test, for the record: model, temperature …"),
    Key("latency", LATENCY, "How long replies may take."),
    Key("reliability", RELIABILITY, "What repeated runs of each input have to come to."),
    Key("stability", STABILITY, "How steady the runs' sessions have to be."),
    Key("metrics", METRICS, "pass@k, pass^k and scores, and what they have to be."),
    Key(
        "models",
        Listing(Text("the name of a model"), "a list of models"),
        'One contract for each, called `name [model]`; `"{model}"` in the service stands for it.',
    ),
    Key("activity", PythonPath(), "A function that says whether a reply shows any work."),
    Key("prevalence", PREVALENCE, "Of harmful content before a guardrail."),
    Key("tags", _NAMES, "To select contracts by."),
)
_OWN = (
    Key("name", Text(), "How reports and baselines call it.", default="what its service is called"),
    Key("description", Text(), "What a reader should know."),
)

CONTRACT = Record(
    "contract",
    (*_OWN, *_SHARED),
    doc="A service and what is promised of it. What it leaves out is taken from the top.",
)

# --- The file ----------------------------------------------------------------

REPORTS = Record(
    "reports",
    tuple(
        Key(one, _PATH, f"Where to write {what}.")
        for one, what in (
            ("html", "a page to look at"),
            ("json", "everything, for programs"),
            ("junit", "JUnit XML, for CI servers"),
            ("md", "Markdown, for a pull request"),
            ("tap", "the Test Anything Protocol"),
        )
    ),
    doc="Files written after each run, from the suite's folder.",
)
STORE = Record(
    "store",
    (
        Key("runs", _PATH, "The folder of runs and journals.", default="`.trialwise`"),
        Key("baselines", _PATH, "The folder of baselines.", default="`baselines`"),
    ),
    doc="Where things are kept, from the suite's folder.",
)
SUITE = Record(
    "suite",
    (
        *_OWN,
        *_SHARED,
        Key(
            "contracts",
            Listing(CONTRACT, "a list of contracts"),
            "Several contracts; the other keys are then what they share.",
        ),
        Key("services", MapOf(SERVICE, "services by name"), "Services that contracts name."),
        Key("reports", REPORTS, "Reports to write."),
        Key("store", STORE, "Where runs and baselines are kept."),
        Key(
            "redact",
            Listing(
                Text("a regular expression", environment="kept"), "a list of regular expressions"
            ),
            "What is taken out of transcripts before they are stored or shown.",
        ),
    ),
    doc="One contract, or several with what they share.",
)


def records() -> list[Record]:
    """Every record of the description, the suite first, each once."""
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
    """The records that have a key of this name, or one that others call so."""
    return [
        record.name
        for record in records()
        if any(key == one.name or key in one.elsewhere for one in record.keys)
    ]
