"""A contract becomes a suite that asks the same, decides by the same cutoffs, and runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from scipy.stats import binom

from trialwise.contrib.importers import ImportRefused, import_mavai, import_suite
from trialwise.errors import DesignRefused
from trialwise.model.claim import Intent
from trialwise.model.criterion import Origin
from trialwise.model.plan import Plan
from trialwise.model.verdict import Decision
from trialwise.procedures.run_plan import plan_run
from trialwise.suite import Suite

Write = Callable[[str, str], Path]
Load = Callable[..., Suite]

CONTRACT = """\
format: mavai-contract/1
contract: greets
service: greeter
criteria:
  - {name: polite, threshold: 0.95, contains: hello}
inputs: [Alice, Bob]
"""
SERVICES = """\
format: mavai-services/1
services:
  greeter:
    type: language-model
    configuration: {system-prompt: "Greet ${NAME}.", provider: openai, model: small}
"""
KEYS = {
    "OPENAI_API_KEY": "k",
    "MAVAI_LLM_BASE_URL": "http://localhost:1/v1",
    "MAVAI_LLM_MODEL": "m",
}


def planned(suite: Suite) -> Plan:
    """The plan of a suite's one contract."""
    (one,) = suite.contracts
    names = [criterion.name for criterion in one.contract.criteria]
    return plan_run(
        one.contract,
        one.options,
        seed=1,
        structure=dict.fromkeys(names, "s"),
        fingerprints={"inputs": "f"},
    )


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("samples", [None, 300, 1000])
def test_a_threshold_is_decided_by_the_same_cutoff(
    write: Write, load: Load, threshold: float, confidence: float, samples: int | None
) -> None:
    """PASS exactly where the binomial tail shows it, as baseltest decides: 96 of 100 for 0.9.

    Without a number of samples it has the fewest trials that can show it.
    """
    text = CONTRACT.replace("0.95", str(threshold)) + f"confidence: {confidence}\n"
    alpha = round(1 - confidence, 9)
    fewest = next(n for n in range(1, 2000) if threshold**n <= alpha * (1 + 1e-9))
    if samples is not None and samples < fewest:
        with pytest.raises(ImportRefused, match=f"at least {fewest} samples"):
            import_mavai(write("c.yaml", text), samples=samples)
        return
    (plan,) = planned(load(import_mavai(write("c.yaml", text), samples=samples))).criteria

    assert ("COMPLIANCE", "fisher") == (plan.procedure, plan.rule)
    assert (samples or fewest) == plan.trials
    assert plan.cutoff == next(
        k
        for k in range(plan.trials + 1)
        if binom.sf(k - 1, plan.trials, threshold) <= alpha * (1 + 1e-9)
    )
    if samples is None:
        assert plan.trials == plan.cutoff


def test_what_a_criterion_says_is_carried_over(write: Write, load: Load) -> None:
    """Names, provenance, confidence, and the kind of question."""
    text = """\
format: mavai-contract/1
contract: pays
service: gateway
confidence: 0.9
criteria:
  - {threshold: 0.9, threshold-origin: sla, contract-ref: SLA §4, matches: 'RF-[0-9]{8}'}
  - {name: no-worse, tolerate: 0.85, confidence: 0.99, contains: confirmed}
inputs: [refund 1, 12, true, [a, 2]]
"""
    imported = import_mavai(write("c.yaml", text))
    (contract,) = load(imported).contracts
    first, second = contract.contract.criteria

    assert ("criterion-1-matches", 0.9, 0.9) == (first.name, first.at_least, first.confidence)
    assert (Origin.SLA, "SLA §4") == (first.origin, first.contract_ref)
    assert 22 == first.trials  # 0.9^22 ≤ 10 % < 0.9^21
    assert ("baseline", 0.99, Origin.EMPIRICAL) == (
        second.no_worse_than,
        second.confidence,
        second.origin,
    )
    inputs = contract.contract.samplings["inputs"].inputs
    assert ["refund 1", 12, True, ["a", 2]] == [one.value for one in inputs]
    assert any("tolerates a rate of 0.85" in note for note in imported.notes)


def test_a_smoke_test_is_one(write: Write, load: Load) -> None:
    """Five trials where no number is given, and no refusal for being few."""
    suite = load(import_mavai(write("c.yaml", CONTRACT + "intent: smoke\n")))
    plan = planned(suite)

    assert Intent.SMOKE is plan.options.intent
    assert 5 == plan.criteria[0].trials


def test_latency_is_enforced_as_there(write: Write, load: Load) -> None:
    """Limits in milliseconds, and a breach that FAILs; too few trials are refused, and noted."""
    text = CONTRACT + "latency: {p50: 200, p95: 1500, confidence: 0.9, threshold-origin: slo}\n"
    imported = import_mavai(write("c.yaml", text), samples=400)
    latency = load(imported).contracts[0].contract.latency

    assert latency is not None
    assert latency.enforced
    assert {"p50": 0.2, "p95": 1.5} == {one.percentile: one.limit_s for one in latency.constraints}
    assert 0.9 == latency.confidence
    assert any("comes from slo" in note for note in imported.notes)
    few = import_mavai(write("c.yaml", CONTRACT + "latency: {p99: 900}\n"), samples=60)
    assert any("cannot decide every percentile" in note for note in few.notes)
    with pytest.raises(DesignRefused):
        planned(load(few))


def test_checks_are_postconditions_where_those_say_the_same(write: Write, load: Load) -> None:
    """The rest is one function beside the suite."""
    text = """\
format: mavai-contract/1
contract: extracts
service: extractor
transforms: {doc: json}
criteria:
  - name: right
    threshold: 0.9
    contains: premium
    not-equals: ERROR
    postconditions:
      - parses: doc
      - {path: $.ok, is: true}
      - {path: $.cancelled, is-null: true}
      - {path: '$.terms[*]', contains-set: [a, 5]}
      - {path: '$.terms[*]', count-equals: 2}
      - {path: $.holder, equals: Frau Beispiel}
      - {path: $.currency, one-of: [CHF, EUR]}
      - {path: $.premium, eq: '2637.80'}
      - {path: $.code, equals: '12'}
inputs: [x]
"""
    imported = import_mavai(write("offer.yaml", text))
    (criterion,) = imported.suite["criteria"]

    *native, rest = criterion["postconditions"]
    assert {"python": "mavai_offer:right"} == rest
    assert [
        {"contains": "premium"},
        {"not": {"equals": "ERROR"}},
        {"parses": "json"},
        {"json_path": {"path": "$.ok", "equals": True}},
        {
            "any_of": [
                {"json_path": {"path": "$.cancelled", "exists": False}},
                {"json_path": {"path": "$.cancelled", "equals": None}},
            ]
        },
        {"json_path": {"path": "$.terms[*]", "equals": "a", "require": "any"}},
        {"json_path": {"path": "$.terms[*]", "equals": 5, "require": "any"}},
        {"json_path": {"path": "$.terms[*]", "count": 2}},
        {"json_path": {"path": "$.holder", "equals": "Frau Beispiel"}},
        {"json_path": {"path": "$.currency", "matches": r"\A(?:CHF|EUR)\Z"}},
    ] == native
    assert "'eq': '2637.80'" in imported.files["mavai_offer.py"]
    assert 1 == len(load(imported).contracts)


def test_a_bound_service_is_called_as_it_is_registered(write: Write, load: Load) -> None:
    """Lists are spread over its parameters, files handed over; the run ends as computed by hand."""
    from trialwise.runtime.running import run

    write("clip.wav", "sound")
    write(
        "mavai-bindings.py",
        """\
def binding(name, **_):
    return lambda function: function

transform = check = binding

@binding("joiner")
def join(first, second=None):
    if second is None:
        return f"{first.kind}:{first.path.name}:{first.data.decode()}"
    return f"{first}+{second}"

@transform("halves")
def halves(text):
    one, other = text.split("+")
    return {"one": one, "other": other}

@check("short")
def short(text):
    return len(text) < 30
""",
    )
    text = """\
format: mavai-contract/1
contract: joins
service: joiner
transforms: {parts: halves}
criteria:
  - name: joined
    threshold: 0.5
    postconditions:
      - {satisfies: short}
inputs:
  - input: [a, 1]
    expected: [{in: parts, path: $.other, eq: 1}, {in: parts, path: $.one, equals: a}]
  - input: {audio: clip.wav}
    expected: {equals: 'audio:clip.wav:sound'}
"""
    imported = import_mavai(write("c.yaml", text), samples=40)
    (contract,) = load(imported).contracts
    verdict = run(contract.contract, options=contract.options, store=None, progress=False).verdict

    digest = hashlib.sha256(b"sound").hexdigest()
    assert {"audio": "clip.wav", "sha256": digest} == imported.suite["inputs"][1]["value"]
    (finding,) = verdict.findings
    assert Decision.PASS is finding.decision
    assert finding.tally.trials == finding.tally.passed
    # Another content behind the name is another input: nothing is judged in its place.
    write("clip.wav", "noise")
    after = run(contract.contract, options=contract.options, store=None, progress=False).verdict
    assert Decision.FAIL is after.findings[0].decision


def test_an_unconnected_service_fails_every_trial_and_says_so(write: Write, load: Load) -> None:
    """What is registered nowhere is left to be written, by name, and never passes."""
    from trialwise.runtime.running import run

    imported = import_mavai(write("c.yaml", CONTRACT))
    (contract,) = load(imported).contracts
    verdict = run(contract.contract, options=contract.options, store=None, progress=False).verdict

    assert any("the service `greeter` as `greeter`" in note for note in imported.notes)
    assert Decision.FAIL is verdict.findings[0].decision
    assert 0 == verdict.findings[0].tally.passed


def test_a_contract_finds_its_service_beside_it(write: Write, load: Load) -> None:
    """mavai-services.yaml is read without being named; a service it lacks is refused."""
    path = write("c.yaml", CONTRACT)
    write("mavai-services.yaml", SERVICES)
    imported = import_suite(path)

    assert {
        "model": "small",
        "base_url": "https://api.openai.com/v1",
        "api_key_env": "OPENAI_API_KEY",
        "system": "Greet $${NAME}.",
        "extra": {"max_completion_tokens": 4096},
    } == imported.suite["service"]["chat"]
    assert 1 == len(load(imported, KEYS).contracts)
    write("mavai-services.yaml", SERVICES.replace("greeter:", "other:"))
    with pytest.raises(ImportRefused, match="there is no service `greeter`"):
        import_mavai(path)


def test_a_baseline_is_measured_under_the_services_configuration(write: Write, load: Load) -> None:
    """Another model or prompt is no reference, as baseltest refuses a drifted one."""
    empirical = CONTRACT.replace("threshold: 0.95, ", "")
    services = write("services.yaml", SERVICES)
    imported = import_suite(services, write("c.yaml", empirical))
    (contract,) = load(imported, KEYS).contracts

    covariates = {one.name: one for one in contract.contract.covariates}
    assert {"system-prompt", "provider", "model"} == set(covariates)
    assert all(one.critical for one in covariates.values())
    prompt = hashlib.sha256(b"Greet ${NAME}.").hexdigest()[:16]
    assert f"sha256:{prompt}" == covariates["system-prompt"].value


def test_a_message_of_several_parts_reaches_the_model(write: Write, load: Load) -> None:
    """In the order of the contract, where the service may be sent such parts."""
    write("swatch.png", "img")
    text = CONTRACT.replace(
        "inputs: [Alice, Bob]", "inputs: [[{text: What colour?}, {image: ./swatch.png}]]"
    )
    allowed = SERVICES.replace("model: small", "model: small, capabilities: [image-input]")
    imported = import_mavai(write("c.yaml", text), write("s.yaml", allowed))

    ((message,),) = imported.suite["inputs"]
    assert [
        {"type": "text", "text": "What colour?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1n"}},
    ] == message["content"]
    assert 1 == len(load(imported, KEYS).contracts)
    with pytest.raises(ImportRefused, match="only where its `capabilities` hold"):
        import_mavai(write("c.yaml", text), write("s.yaml", SERVICES))
    several = CONTRACT.replace("Alice", "[a, b]")
    with pytest.raises(ImportRefused, match="takes one input"):
        import_mavai(write("c.yaml", several), write("s.yaml", SERVICES))


def test_many_inputs_have_a_file_of_their_own(write: Write, load: Load) -> None:
    """A suite stays readable."""
    long = ", ".join(f"'{number} {'x' * 200}'" for number in range(200))
    imported = import_mavai(write("c.yaml", CONTRACT.replace("Alice, Bob", long)))

    assert {"jsonl": "mavai_c.inputs.jsonl"} == imported.suite["inputs"]
    assert 200 == len(load(imported).contracts[0].contract.samplings["inputs"].inputs)


HOSTILE = [
    '"""\nimport os\nos.system("x")\n"""',
    "a\\",
    "x'); import os; ('",
    "__import__('os')",
    "\u202e\x07",
    "def",
    "criterion",
    "9lives",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_and_texts_of_a_file_never_become_code(write: Write, load: Load, name: str) -> None:
    """Whatever a criterion, a service, a view or an operand is called."""
    import json

    quoted = json.dumps(name)
    text = f"""\
format: mavai-contract/1
contract: {quoted}
service: {quoted}
transforms: {{{quoted}: {quoted}}}
criteria:
  - name: {quoted}
    threshold: 0.5
    postconditions:
      - {{in: {quoted}, equals-ci: {quoted}}}
      - {{satisfies: {quoted}}}
inputs: [{quoted}]
"""
    imported = import_mavai(write("c.yaml", text))
    (source,) = imported.files.values()
    tree = compile(source, "x", "exec", dont_inherit=True)

    assert "os" not in tree.co_names
    (contract,) = load(imported).contracts
    assert name == contract.name
    assert name == contract.contract.criteria[0].name
