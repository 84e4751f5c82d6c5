"""From a suite file to contracts and options: every key arrives, every mistake has its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trialwise.model.baseline import Covariate
from trialwise.model.claim import Claim, Estimator, PopulationClaim, TargetEstimand
from trialwise.model.contract import Latency, LatencyConstraint, Prevalence
from trialwise.model.criterion import Criterion
from trialwise.model.options import AbortRule, Budget, RunOptions
from trialwise.model.reply import Reply
from trialwise.suite import Report, Suite, SuiteError, load_suite

Load = Callable[..., Suite]
Refused = Callable[..., SuiteError]
Module = Callable[[str], str]

SERVICE = 'service: {command: [echo, "{input}"]}\n'
BASE = SERVICE + "inputs: [one, two]\n"
CRITERIA = 'criteria: [{name: c, contains: "1", at_least: 90%}]\n'


def only(suite: Suite) -> Any:
    """The one contract of a suite."""
    (contract,) = suite.contracts
    return contract


def criterion(suite: Suite) -> Criterion:
    """The one criterion of its one contract."""
    (found,) = only(suite).contract.criteria
    assert isinstance(found, Criterion)
    return found


def messages(error: SuiteError) -> list[str]:
    """What is wrong, without where."""
    return [one.message for one in error.problems]


def test_the_shortest_useful_suite(load: Load, module: Module) -> None:
    """Four lines: a function, what it is asked, and what is promised."""
    agent = module("def answer(question: str) -> str:\n    return '555'\n")
    suite = load(
        f'service: {{python: "{agent}:answer"}}\n'
        "inputs: [What is 15 * 37?, Capital of Australia?]\n"
        "criteria:\n"
        '  - {name: answers, contains: "555", at_least: 90%}\n'
    )
    contract = only(suite).contract

    assert f"{agent}:answer" == contract.name
    assert [("1", "What is 15 * 37?"), ("2", "Capital of Australia?")] == [
        (one.id, one.value) for one in contract.samplings["inputs"].inputs
    ]
    assert 0.9 == contract.criteria[0].at_least
    assert contract.criteria[0].checks[0].check(Reply(value="it is 555")).passed
    assert RunOptions() == only(suite).options
    assert (suite.folder / ".trialwise", suite.folder / "baselines") == (
        suite.runs_folder,
        suite.baselines_folder,
    )


def test_every_option_of_a_run(load: Load) -> None:
    """In the units that people write."""
    suite = load(
        BASE
        + CRITERIA
        + """
intent: smoke
rule: exact
analysis: per-protocol
max_trials: 500
seed: -7
draw: independent
concurrency: 8
rate: 300/min
timeout: 1.5s
retries: 2
curtail: false
baseline: b-1
horizon: 52
overrides: [COVARIATE_MISMATCH]
budget: {trials: 1000, time: 1h, tokens: 50000, money: $2.50}
abort: {max_error_rate: 20%, after: 5, to: fail}
tags: [nightly, paid]
description: Sums.
name: sums
"""
    )

    assert (
        RunOptions(
            intent="SMOKE",  # type: ignore[arg-type]
            rule="exact",
            analysis="per-protocol",  # type: ignore[arg-type]
            max_trials=500,
            seed=-7,
            draw="independent",
            concurrency=8,
            rate_per_s=5.0,
            timeout_s=1.5,
            retries=2,
            curtail=False,
            baseline="b-1",
            horizon=52,
            overrides=("COVARIATE_MISMATCH",),
            budget=Budget(trials=1000, seconds=3600.0, tokens=50_000, usd=2.5),
            abort=AbortRule(max_error_rate=0.2, after=5, to_fail=True),
        )
        == only(suite).options
    )
    assert ("nightly", "paid") == only(suite).tags
    assert ("sums", "Sums.") == (only(suite).name, only(suite).contract.description)


def test_every_part_of_a_contract(load: Load, module: Module) -> None:
    """Claim, covariates, factors, latency, prevalence, activity."""
    agent = module("def worked(reply):\n    return True\n")
    suite = load(
        BASE
        + CRITERIA
        + f"""
claim:
  population: superpopulation
  name: tickets of 2026
  representativeness: drawn at random
  estimand: prompt-weighted
  estimator: prompts
covariates:
  - weekday
  - {{name: hour, kind: time-of-day, window: 6h, zone: Europe/Zurich}}
  - {{name: region, kind: region, value: eu, critical: true}}
  - {{name: release, value: 7}}
factors: {{model: small-1, temperature: 0.7}}
latency: {{p50: 100ms, p95: 2s, baseline: [p99], enforced: true, confidence: 99%}}
prevalence: {{rate: 0.1%, confidence: 95%, source: pre-guardrail, evidence: monitor}}
activity: {agent}:worked
"""
    )
    contract = only(suite).contract

    assert (
        Claim(
            population=PopulationClaim.SUPERPOPULATION,
            population_name="tickets of 2026",
            representativeness="drawn at random",
            estimand=TargetEstimand.PROMPT_WEIGHTED,
            estimator=Estimator.PROMPTS,
        )
        == contract.claim
    )
    assert (
        Covariate(name="weekday", kind="weekday"),
        Covariate(name="hour", kind="time-of-day", window_hours=6, zone="Europe/Zurich"),
        Covariate(name="region", kind="region", value="eu", critical=True),
        Covariate(name="release", value="7"),
    ) == contract.covariates
    assert {"model": "small-1", "temperature": "0.7"} == dict(contract.factors)
    assert (
        Latency(
            constraints=(
                LatencyConstraint(percentile="p50", limit_s=0.1),
                LatencyConstraint(percentile="p95", limit_s=2.0),
                LatencyConstraint(percentile="p99"),
            ),
            enforced=True,
            confidence=0.99,
        )
        == contract.latency
    )
    assert (
        Prevalence(rate=0.001, confidence=0.95, source="pre-guardrail", evidence="monitor")
        == contract.prevalence
    )
    assert contract.activity(Reply(value="x"))


def test_every_part_of_a_criterion(load: Load) -> None:
    """The three questions with all that goes with them."""
    suite = load(
        BASE
        + """
criteria:
  - {name: a, contains: x, at_least: 99.9%, max_trials: 300, margin: 2%, confidence: 99%,
     power: 90%, origin: SLA, ref: "SLA v2.1 §4.3", class: CORRECTNESS, each_input: true}
  - {name: b, contains: x, no_worse_than: baseline, trials: 100}
  - {name: c, contains: x, never_fails: true, min_probes: 50}
"""
    )
    one, two, three = only(suite).contract.criteria

    assert (
        Criterion(
            "a",
            one.checks,
            at_least=0.999,
            max_trials=300,
            margin=0.02,
            confidence=0.99,
            power=0.9,
            origin="SLA",
            contract_ref="SLA v2.1 §4.3",
            category="CORRECTNESS",
            each_input=True,
        )
        == one
    )
    assert Criterion("b", two.checks, no_worse_than="baseline", trials=100) == two
    assert Criterion("c", three.checks, never_fails=True, min_probes=50) == three


def test_postconditions_in_place_and_in_a_list(load: Load, module: Module) -> None:
    """All of them must hold, in the order in which they stand."""
    functions = module("def is_short(text: str) -> bool:\n    return len(text) < 9\n")
    suite = load(
        BASE
        + f"""
criteria:
  - name: c
    contains: [a, b]
    max_latency: 500ms
    max_cost: $0.05
    python: {functions}:is_short
    at_least: 90%
    postconditions:
      - any_of:
          - {{starts_with: {{text: A, ignore_case: true}}}}
          - not: {{python: "{functions}:is_short"}}
      - named: {{name: no card number, check: {{not: {{matches: '\\d{{16}}'}}}}}}
      - json_path: {{path: $.a, min: 1, max: 2}}
      - equals: {{expected: x, trim: true}}
      - equals: {{answer: 5}}
      - equals: null
"""
    )

    checks: list[Any] = list(criterion(suite).checks)
    contains, latency, cost, short, either, card, path, trimmed, value, null = checks
    assert ["contains 'a' and 'b'", "is_short", "starts with 'A' or not (is_short)"] == [
        one.name for one in (contains, short, either)
    ]
    assert "no card number" == card.name
    assert [True, False] == [latency.check(Reply(value="", latency_s=s)).passed for s in (0.5, 0.6)]
    assert [True, False] == [cost.check(Reply(value="", cost_usd=c)).passed for c in (0.05, 0.06)]
    assert [True, False] == [path.check(Reply(value=f'{{"a": {a}}}')).passed for a in (2, 3)]
    assert trimmed.check(Reply(value=" x ")).passed
    assert value.check(Reply(value='{"answer": 5}')).passed
    assert null.check(Reply(value="null")).passed


def test_a_json_schema_may_stand_in_a_file(load: Load, refused: Refused, tmp_path: Path) -> None:
    """A text is its path, since no schema is a text."""
    (tmp_path / "answer.json").write_text('{"type": "object", "required": ["a"]}')
    text = BASE + "criteria: [{name: c, json_schema: answer.json, at_least: 90%}]\n"

    check: Any = criterion(load(text)).checks[0]
    assert not check.check(Reply(value="{}")).passed
    assert check.check(Reply(value='{"a": 1}')).passed
    (tmp_path / "answer.json").write_text('{"type": ')
    assert "the file is not JSON" in str(refused(text))
    (tmp_path / "answer.json").write_text('{"type": "thing"}')
    assert "be a JSON Schema" in str(refused(text))


def test_several_contracts_share_what_stands_at_the_top(load: Load) -> None:
    """A key of one's own replaces the shared one whole."""
    suite = load(
        """
services:
  small: {command: [small, "{input}"]}
  large: {command: [large, "{input}"]}
service: small
inputs: [one]
max_trials: 100
timeout: 10s
budget: {money: $5, trials: 500}
tags: nightly
criteria: [{name: c, contains: x, at_least: 90%}]
contracts:
  - {name: a}
  - {name: b, service: large, trials: 50, budget: {money: $1}, tags: [paid]}
  - name: c
    service: {command: [other, "{input}"]}
    samplings: {red: [bad, worse]}
    criteria: [{name: d, contains: y, never_fails: true}]
"""
    )
    a, b, c = suite.contracts

    assert ["a", "b", "c"] == [one.name for one in suite.contracts]
    assert (100, None) == (a.options.max_trials, a.options.trials)
    assert (None, 50) == (b.options.max_trials, b.options.trials)
    assert (Budget(usd=5.0, trials=500), Budget(usd=1.0)) == (a.options.budget, b.options.budget)
    assert (10.0, 10.0) == (b.options.timeout_s, c.options.timeout_s)
    assert (("nightly",), ("paid",)) == (a.tags, b.tags)
    assert (["inputs"], ["red"]) == ([*a.contract.samplings], [*c.contract.samplings])
    assert ["c", "c", "d"] == [one.contract.criteria[0].name for one in suite.contracts]
    assert "large" in repr(b.contract.service)
    assert [13, 14, 15] == [one.line for one in suite.contracts]


def test_contracts_without_a_name_are_called_by_their_services(load: Load) -> None:
    """The same on every machine, since baselines are found by it."""
    suite = load(
        """
services: {named: {command: [x, "{input}"]}}
inputs: [one]
criteria: [{name: c, contains: x, at_least: 90%}]
contracts:
  - service: named
  - service: {command: [/usr/bin/agent, "{input}"]}
  - service: {http: "https://api.example.com/v1/ask"}
  - service: {chat: {model: small-1, api_key_env: null}}
"""
    )

    assert ["named", "agent", "api.example.com", "small-1"] == [one.name for one in suite.contracts]


def test_several_samplings(load: Load) -> None:
    """Each with its role and version; trials by sampling."""
    suite = load(
        SERVICE
        + """
samplings:
  harmful:
    inputs: [{value: bad, stratum: weapons}]
    role: harmful-candidates
    version: "3"
    description: redacted
  harmless: [good, fine]
trials: {harmful: 100, harmless: 50}
criteria:
  - {name: blocks, contains: x, at_least: 90%, sampling: harmful}
  - {name: passes, contains: y, at_least: 90%, sampling: harmless}
latency: {p95: 2s, sampling: harmless}
"""
    )
    contract = only(suite).contract

    assert ("harmful 3", "harmful-candidates", "redacted") == (
        contract.samplings["harmful"].label,
        contract.samplings["harmful"].role,
        contract.samplings["harmful"].description,
    )
    assert {"harmful": 100, "harmless": 50} == only(suite).options.trials
    assert "harmless" == contract.latency_experiment


def test_reports_store_and_redaction(load: Load, tmp_path: Path) -> None:
    """From the suite's folder."""
    suite = load(
        BASE
        + CRITERIA
        + "reports: {html: out/r.html, junit: /tmp/j.xml}\n"
        + "store: {runs: .runs, baselines: refs}\n"
        + "redact: ['[0-9]{16}']\n"
    )

    assert (
        Report(format="html", path=tmp_path / "out/r.html"),
        Report(format="junit", path=Path("/tmp/j.xml")),
    ) == suite.reports
    assert (tmp_path / ".runs", tmp_path / "refs") == (suite.runs_folder, suite.baselines_folder)
    assert "card [redacted]" == suite.redaction("card 4111111111111111")


def test_loading_leaves_the_process_as_it_was_but_for_imports(load: Load) -> None:
    """A suite without functions imports nothing of the user's."""
    import sys

    before = [*sys.path]
    load(BASE + CRITERIA)

    assert before == sys.path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # roots
        ("[]", "a suite must be a mapping (suite), got a list"),
        ("5", "a suite must be a mapping (suite), got `5`"),
        ("a suite", "a suite must be a mapping (suite), got `a suite`"),
        ("{}", "there is no `service`: say what is under test"),
        # keys
        (BASE + CRITERIA + "trails: 5\n", "unknown key `trails`; did you mean `trials`?"),
        (BASE + CRITERIA + "rate_per_s: 5\n", "unknown key `rate_per_s`; did you mean `rate`?"),
        (BASE + CRITERIA + "confidence: 99%\n", "it belongs in a criterion"),
        (BASE + CRITERIA + "weights: {c: 1}\n", "it belongs in `metrics`"),
        # words of other tools
        (BASE + CRITERIA + "runs: 5\n", "unknown key `runs`; did you mean `trials`?"),
        (BASE + CRITERIA + "epochs: 5\n", "did you mean `trials`?"),
        (BASE + CRITERIA + "threshold: 0.9\n", "it belongs in a criterion"),
        (BASE + "criteria: [{name: c, contains: x, threshold: 90%}]\n", "mean `at_least`?"),
        (BASE + CRITERIA + "workers: 5\n", "did you mean `concurrency`?"),
        (BASE + CRITERIA + "budget: {usd: 5}\n", "did you mean `money`?"),
        (BASE + CRITERIA + "budget: 5\n", "its keys are `trials`, `time`, `tokens`, `money`"),
        (BASE + CRITERIA + "zzz: 1\n", "unknown key `zzz` in a suite; known are `name`"),
        (BASE + CRITERIA + "trials:\n", "`trials` has no value"),
        (BASE + CRITERIA + "budget: {mony: 5}\n", "did you mean `money`?"),
        (BASE + CRITERIA + "claim: {populaton: x}\n", "did you mean `population`?"),
        (BASE + CRITERIA + "latency: {p97: 2s}\n", "did you mean `p9"),
        (BASE + CRITERIA + "latency: {enforced: true}\n", "lacks one of `p50`"),
        # values
        (BASE + CRITERIA + "trials: 0\n", "a whole number of at least 1"),
        (BASE + CRITERIA + "trials: 1.5\n", "a whole number of at least 1"),
        (BASE + CRITERIA + 'trials: "5"\n', "got `5`; without quotes"),
        (BASE + CRITERIA + "trials: 10000000000\n", "at most 1,000,000,000"),
        (BASE + CRITERIA + "trials: true\n", "a whole number of at least 1"),
        (BASE + CRITERIA + "timeout: 30\n", "did you mean 30s?"),
        (BASE + CRITERIA + "timeout: 0s\n", "must be a time with its unit"),
        (BASE + CRITERIA + "rate: 5\n", "did you mean 5/s?"),
        (BASE + CRITERIA + "curtail: no\n", "must be true or false, got `no`; write false"),
        (BASE + CRITERIA + "intent: Smoke\n", "did you mean `smoke`?"),
        (BASE + CRITERIA + "rule: wald\n", "must be `exact`, `wilson` or `fisher`"),
        (BASE + CRITERIA + "name: 5\n", 'must be text, got `5`; put quotes around it, "5"'),
        (BASE + CRITERIA + 'name: " "\n', "`name` must be text"),
        (BASE + CRITERIA + "budget: {money: $0}\n", "`money` must be a finite number above 0"),
        (BASE + CRITERIA + "budget: {money: lots}\n", "an amount in US dollars"),
        (BASE + CRITERIA + "tags: [a, ~]\n", "an item of `tags` is empty"),
        (BASE + CRITERIA + "tags: []\n", "`tags` must be a list of texts, it has 0"),
        (BASE + CRITERIA + "factors: {}\n", "`factors` must be factors by name, it is empty"),
        (BASE + CRITERIA + "redact: ['(']\n", "must be a regular expression"),
        (BASE + CRITERIA + "reports: {pdf: x}\n", "unknown key `pdf`"),
        # what excludes or needs one another
        (BASE + CRITERIA + "trials: 5\nmax_trials: 9\n", "`max_trials` must be left out where"),
        (BASE + CRITERIA + "samplings: {a: [b]}\n", "`inputs` and `samplings` exclude"),
        (BASE + CRITERIA + "claim: {population: superpopulation}\n", "name the population"),
        (BASE + CRITERIA + "covariates: [{name: a}]\n", "`value` must be given, or else the"),
        (BASE + CRITERIA + "covariates: [weekday, weekday]\n", "declared twice"),
        (
            BASE + CRITERIA + "covariates: [{name: a, kind: time-of-day, window: 90m}]\n",
            "whole hours",
        ),
        (
            BASE + CRITERIA + "covariates: [{name: a, kind: time-of-day, window: 5h}]\n",
            "`window` must divide the day",
        ),
        (
            BASE + CRITERIA + "latency: {p95: 1s, baseline: [p95]}\n",
            "`baseline` must leave out p95",
        ),
        (BASE + CRITERIA + "trials: {other: 5}\n", "there is no sampling `other`"),
        (BASE + CRITERIA + "services: {}\n", "`services` must be services by name, it is empty"),
        ("service: agent\ninputs: [a]\n" + CRITERIA, "describe it under `services`"),
        ("service: 'm:f'\ninputs: [a]\n" + CRITERIA, 'a function is written `{python: "m:f"}`'),
        (
            "services: {agent: {command: [x, '{input}']}}\nservice: agnt\ninputs: [a]\n" + CRITERIA,
            "there is no service `agnt`; did you mean `agent`?",
        ),
        (SERVICE + CRITERIA, "there are no `inputs`"),
        (BASE, "there are no `criteria`"),
        (BASE + CRITERIA + "contracts: []\n", "`contracts` must be a list of contracts, it has 0"),
        (
            "name: x\n" + BASE + CRITERIA + "contracts: [{name: a}]\n",
            "`name` belongs in each of the contracts",
        ),
        (BASE + CRITERIA + "contracts: [{name: a}, {name: a}]\n", "give this one a `name`"),
        # criteria
        (BASE + "criteria: {c: {contains: x}}\n", "must be a list of criteria, got a mapping"),
        (BASE + "criteria: [{contains: x, at_least: 90%}]\n", "lacks `name`"),
        (BASE + "criteria: [{name: c, at_least: 90%}]\n", "lacks one of `postconditions`"),
        (BASE + "criteria: [{name: c, contains: x}]\n", "lacks one of `at_least`"),
        (BASE + "criteria: [{name: c, contains: x, never_fails: false}]\n", "lacks one of"),
        (
            BASE + "criteria: [{name: c, contains: x, at_least: 90%, never_fails: true}]\n",
            "`at_least` and `never_fails` exclude one another",
        ),
        (BASE + "criteria: [{name: c, contains: x, at_least: 95}]\n", "did you mean 95%?"),
        (BASE + "criteria: [{name: c, contains: x, at_least: 1}]\n", "so ask for never_fails"),
        (BASE + "criteria: [{name: c, contains: x, at_least: 0}]\n", "strictly between 0 and 1"),
        (
            BASE + "criteria: [{name: c, contains: x, no_worse_than: baseline, max_trials: 5}]\n",
            "`max_trials` must go with at_least or never_fails",
        ),
        (BASE + "criteria: [{name: c, contains: 555, at_least: 90%}]\n", 'quotes around it, "555"'),
        (
            BASE + "criteria: [{name: c, contains: [], at_least: 90%}]\n",
            "a list of texts, it has 0",
        ),
        (BASE + "criteria: [{name: c, contians: x, at_least: 90%}]\n", "did you mean `contains`?"),
        (BASE + "criteria: [{name: c, all: [], at_least: 90%}]\n", "did you mean `all_of`?"),
        (
            BASE + "criteria: [{name: c, contains: {text: x, max: 0}, at_least: 90%}]\n",
            "`maximum` must be at least minimum (1)",
        ),
        (
            BASE + "criteria: [{name: c, length: {min: 1, minimum: 2}, at_least: 90%}]\n",
            "`minimum` and `minimum` are the same",
        ),
        (BASE + "criteria: [{name: c, length: 5, at_least: 90%}]\n", "a mapping of `minimum`"),
        (BASE + "criteria: [{name: c, max_latency: 2, at_least: 90%}]\n", "did you mean 2s?"),
        (BASE + "criteria: [{name: c, parses: toml, at_least: 90%}]\n", "`json`, `yaml`"),
        (BASE + "criteria: [{name: c, expression: 'a +', at_least: 90%}]\n", "be a CEL expression"),
        (BASE + "criteria: [{name: c, json_path: '$[', at_least: 90%}]\n", "be a JSONPath"),
        (
            BASE + "criteria: [{name: c, json_path: {path: $.a, between: [1]}, at_least: 90%}]\n",
            "must be two numbers, it has 1",
        ),
        (
            BASE + "criteria: [{name: c, postconditions: [{contains: x, parses: json}], "
            "at_least: 90%}]\n",
            "must be one postcondition, this holds 2",
        ),
        (BASE + "criteria: [{name: c, any_of: [x], at_least: 90%}]\n", "a postcondition such as"),
        (BASE + "criteria: [{name: c, not: {prases: json}, at_least: 90%}]\n", "`parses`?"),
        (BASE + "criteria: [{name: c, named: {name: x}, at_least: 90%}]\n", "lacks `check`"),
        (
            BASE + "criteria: [{name: c, contains: x, at_least: 90%, sampling: red}]\n",
            "there is no sampling `red`; there are `inputs`",
        ),
        (
            SERVICE + "samplings: {a: [x], b: [y]}\n" + CRITERIA,
            "the criterion `c` needs a `sampling`: there are `a`, `b`",
        ),
        (
            SERVICE + "samplings: {a: [x], b: [y]}\n"
            "criteria: [{name: c, contains: x, at_least: 90%, sampling: a}]\n",
            "no criterion runs over `b`",
        ),
        (
            SERVICE + "samplings: {a: [x], b: [y]}\nlatency: {p95: 1s}\n"
            "criteria: [{name: c, contains: x, at_least: 90%, sampling: a},"
            " {name: d, contains: x, at_least: 90%, sampling: b}]\n",
            "`latency` needs a `sampling`",
        ),
    ],
)
def test_a_mistake_is_named(refused: Refused, text: str, message: str) -> None:
    """With what was expected, or the nearest word there is."""
    assert message in "\n".join(messages(refused(text)))


def test_two_criteria_of_one_name_are_refused_where_the_second_stands(refused: Refused) -> None:
    """The first is named by its line."""
    error = refused(
        BASE + "criteria:\n  - {name: c, contains: x, at_least: 90%}\n"
        "  - {name: c, contains: y, at_least: 90%}\n"
    )

    (problem,) = error.problems
    assert (5, 12) == (problem.line, problem.column)
    assert "the name `c` is that of the criterion on line 4 already" == problem.message


def test_every_mistake_is_reported_at_once(refused: Refused) -> None:
    """Also those that only the model sees, and those beside others in one criterion."""
    error = refused(
        """service: {pyton: "x:y"}
inputs: [{question: x}]
timeout: 30
criteria:
  - {name: a, contains: 5, at_least: 1}
  - {name: b, matches: "(", at_lest: 90%}
  - {name: c, contains: x, at_least: 90%, confidence: 100%}
budget: {money: 0}
"""
    )

    assert [1, 2, 2, 3, 5, 5, 6, 6, 7, 8] == [one.line for one in error.problems]


def test_a_file_that_is_not_there_is_a_suite_error(tmp_path: Path) -> None:
    """Like any other reason why a suite cannot be used."""
    with pytest.raises(SuiteError, match="cannot be read"):
        load_suite(tmp_path / "none.yaml", environment={})
    with pytest.raises(SuiteError, match="is a folder"):
        load_suite(tmp_path, environment={})
    with pytest.raises(SuiteError, match="cannot be a file's name"):
        load_suite(Path("a\0b"), environment={})


def test_a_file_that_is_too_large_or_no_text_is_a_suite_error(refused: Refused) -> None:
    """Before it is read."""
    assert "at most 1,000,000 are read" in str(refused("#" * 1_000_001))
    error = refused(b"name: caf\xe9\n")
    assert "is not UTF-8 (byte 0xe9 at offset 9)" in str(error)
    assert (1, 10) == (error.problems[0].line, error.problems[0].column)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Reading it would never end."""
    import os

    os.mkfifo(tmp_path / "trialwise.yaml")

    with pytest.raises(SuiteError, match="is not a regular file"):
        load_suite(tmp_path / "trialwise.yaml", environment={})
