"""Runs to report on: designed and judged by the package itself, over simulated services."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from tests.revising import replace

from trialwise.engine.criterion_progress import issue_places
from trialwise.model.baseline import Baseline, BaselineReference, CriterionBaseline
from trialwise.model.claim import Claim, Input, Intent, Sampling, SamplingRole
from trialwise.model.contract import Contract, Latency, LatencyConstraint
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import Guard, Reproducibility, Severity, Spending, StopReason, Tally
from trialwise.model.gate import Metrics, Reliability, Stability
from trialwise.model.options import Budget, RunOptions
from trialwise.model.plan import Plan
from trialwise.model.reply import Usage
from trialwise.model.run import RunRecord, Trials
from trialwise.model.trial import CheckResult, ErrorClass, FailReason, Outcome, Trial
from trialwise.procedures.compliance import decide_compliance
from trialwise.procedures.composite import compose
from trialwise.procedures.criterion_rows import Stream
from trialwise.procedures.run_plan import plan_run
from trialwise.procedures.run_verdict import decide_run
from trialwise.stats.agreement import Confusion
from trialwise.stats.trace_stability import TraceShape, read_trace

STARTED = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \x1b[31mred\u202etxt.exe"
QUESTIONS = (
    "refund-late-parcel", "change-address", "cancel-plan", "invoice-copy", "password-reset",
    "opening-hours", "double-charge", "delivery-estimate", "gift-card-balance", "warranty-claim",
    "delete-account", "speak-to-human",
)  # fmt: skip
JSON_REPLY = '{"intent": "refund", "order": "A-20391", "amount": 24.90, "currency": "EUR"}'
CUT_REPLY = '{"intent": "refund", "order": "A-20391", "amount": 24.9'
CALLS: tuple[Mapping[str, Any], ...] = (
    {"name": "find_order", "server": "shop", "args": {"id": "A-20391"}, "latency_s": 0.21},
    {"name": "refund_policy", "args": {"country": "DE"}, "latency_s": 0.08},
    {"name": "refund", "server": "shop", "args": {"order": "A-20391", "amount": 249.0}},
)

Failure = tuple[str, str, str, FailReason]
"""Postcondition, explanation, evidence and reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a simulated service gave in one trial."""

    failures: Mapping[str, Failure]
    """By criterion."""
    reply: str | None = JSON_REPLY
    latency_s: float | None = 0.8
    error_class: ErrorClass = ErrorClass.NONE
    error: str = ""
    attempts: int = 1
    attempt_errors: tuple[str, ...] = ()
    tokens: tuple[int, int] = (420, 90)
    cost_usd: float | None = 0.004
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    messages: tuple[tuple[str, str], ...] = ()
    shape: TraceShape | None = None
    setup_s: float | None = None


Service = Callable[[Random, str], Answer]
"""Answers an input, given by its id."""


# --- From a contract to a record --------------------------------------------------------------


def criterion(name: str, **question: Any) -> Criterion:
    return Criterion(name, bool, **question)


def sampling_of(ids: Sequence[str], role: SamplingRole = SamplingRole.REPRESENTATIVE) -> Sampling:
    return Sampling(
        inputs=tuple(Input(id=one, value=one) for one in ids),
        identifier="questions",
        version="2026-03",
        role=role,
        description="From last month's tickets, names redacted.",
    )


def plan_of(
    contract: str,
    inputs: Sequence[str],
    criteria: Sequence[Criterion],
    *,
    latency: Latency | None = None,
    claim: Claim | None = None,
    baseline: Baseline | None = None,
    guards: tuple[Guard, ...] = (),
    measuring: bool = False,
    factors: Mapping[str, str] | None = None,
    covariates: Mapping[str, str] | None = None,
    gates: Mapping[str, Any] | None = None,
    **options: Any,
) -> Plan:
    promised = Contract(
        contract,
        None,
        tuple(criteria),
        sampling=sampling_of(inputs),
        claim=claim or Claim(),
        latency=latency,
        factors=factors or {"model": "small-3", "temperature": "0.7"},
        **(gates or {}),
    )
    return plan_run(
        promised,
        RunOptions(concurrency=4, retries=2, timeout_s=30, **options),
        seed=20260314,
        structure={one.name: "77aa01" for one in criteria},
        fingerprints=dict.fromkeys(promised.samplings, "4be1c2d09a77"),
        baseline=baseline,
        references={} if baseline is None else _references(baseline),
        covariates=covariates or {"region": "eu-west", "day": "WEEKEND"},
        guards=guards,
        measuring=measuring,
    )


def _references(baseline: Baseline) -> dict[str, BaselineReference]:
    return {
        name: BaselineReference(
            identifier=baseline.identifier,
            file=f"baselines/{baseline.contract}/{baseline.identifier}.json",
            created_at=baseline.created_at,
            trials=one.trials,
            passed=one.passed,
            covariates=baseline.covariates,
            covariate_match="day differs",
            factors=baseline.factors,
            expires_at=baseline.expires_at,
            epoch=baseline.epoch,
        )
        for name, one in baseline.criteria.items()
    }


def run(plan: Plan, service: Service, *, stop_after: int | None = None) -> list[Trial]:
    """Trials in issue order until every criterion is settled or this many are in."""
    sampling = plan.experiments[0]
    each_input = any(one.counting.each_input for one in plan.criteria)
    streams = {
        (one.criterion, each): Stream(one.limits)
        for one in plan.criteria
        if not one.counting.rides_along
        for each in (sampling.input_ids if one.counting.each_input else (None,))
    }
    asks_all = any(one.counting.asks_every_input for one in plan.criteria)
    unasked = set(sampling.input_ids if asks_all else ())
    trials: list[Trial] = []
    for index, place in enumerate(issue_places(sampling, seed=plan.seed, each_input=each_input)):
        input_id = sampling.input_ids[place]
        mine = {key: one for key, one in streams.items() if key[1] in (None, input_id)}
        if len(trials) == stop_after:
            break
        if all(stream.is_settled for stream in mine.values()) and input_id not in unasked:
            continue
        unasked.discard(input_id)
        trial = _trial(plan, index, input_id, service)
        trials.append(trial)
        for (name, _), stream in mine.items():
            stream.add(stream.next_place, passed=trial.outcome(name).passed)
    return trials


def _trial(plan: Plan, index: int, input_id: str, service: Service) -> Trial:
    source = Random(f"{plan.seed}/{index}")
    answer = service(source, input_id)
    outcomes = []
    for one in plan.criteria:
        failure = answer.failures.get(one.criterion)
        result = CheckResult.ok()
        if failure is not None:
            result = CheckResult.fail(failure[1], evidence=failure[2], reason=failure[3])
        outcomes.append(
            Outcome(
                criterion=one.criterion,
                result=result,
                postcondition=(failure[0] or None) if failure else None,
                error_class=answer.error_class,
            )
        )
    return Trial(
        experiment=plan.experiments[0].name,
        index=index,
        input_id=input_id,
        seed=source.getrandbits(32),
        outcomes=tuple(outcomes),
        error_class=answer.error_class,
        error=answer.error,
        latency_s=answer.latency_s,
        usage=Usage(input_tokens=answer.tokens[0], output_tokens=answer.tokens[1]),
        cost_usd=answer.cost_usd,
        attempts=answer.attempts,
        attempt_errors=answer.attempt_errors,
        started_s=index * 0.21 + source.random() * 0.05,
        reply=answer.reply,
        tool_calls=answer.tool_calls,
        messages=answer.messages,
        shape=answer.shape,
        setup_s=answer.setup_s,
    )


def record_of(
    plan: Plan,
    trials: Sequence[Trial],
    *,
    stop: StopReason = StopReason.COMPLETE,
    run_id: str = "20260314T092653Z-7f3a",
    message: str = "",
    plan_hash: str = "90b1d4e6c2f7",
) -> RunRecord:
    costs = [trial.cost_usd for trial in trials if trial.cost_usd is not None]
    verdict = decide_run(
        plan,
        trials,
        stops={one.name: stop for one in plan.experiments},
        stop=stop,
        spending=Spending(
            trials=len(trials),
            attempts=sum(trial.attempts for trial in trials),
            seconds=trials[-1].started_s + 1.2 if trials else 0.0,
            tokens=sum(t.usage.total_tokens for t in trials if t.usage is not None),
            usd=sum(costs) if costs else None,
            abandoned=2,
        ),
        run_id=run_id,
        started_at=STARTED,
        message=message,
        reproducibility=Reproducibility(
            tool_version="0.1.0", python_version="3.11.7", seed=plan.seed, plan_hash=plan_hash
        ),
    )
    return RunRecord(run_id=run_id, plan=plan, trials=Trials.of(trials), verdict=verdict)


# --- Services ---------------------------------------------------------------------------------


def latency_of(source: Random, *, scale: float = 0.7, spread: float = 0.45) -> float:
    return scale * source.lognormvariate(0, spread)


def steady(rate: float, *criteria: str) -> Service:
    """Every criterion passes with one rate, whatever the input."""

    def answer(source: Random, input_id: str) -> Answer:
        failures: dict[str, Failure] = {}
        for name in criteria:
            if source.random() >= rate:
                failures[name] = (
                    "contains the order number",
                    f"expected the order number of {input_id!r} in the reply, found none",
                    "I have refunded your order.",
                    FailReason.CONDITION,
                )
        return Answer(failures=failures, latency_s=latency_of(source))

    return answer


def troubled(source: Random, input_id: str) -> Answer:
    """An agent with every kind of trouble; one input is far worse than the rest."""
    chance = source.random()
    everything = ("valid-json", "grounded")
    if chance < 0.015:
        gone: Failure = ("", "no reply: connection reset by peer", "", FailReason.NO_VALUE)
        return Answer(
            failures=dict.fromkeys(everything, gone), reply=None, latency_s=None,
            error_class=ErrorClass.INFRASTRUCTURE, error="connection reset by peer",
            attempts=3, attempt_errors=("503 Service Unavailable", "connection reset by peer"),
        )  # fmt: skip
    if chance < 0.03:
        late: Failure = ("", "no reply within 30 s", "", FailReason.NO_VALUE)
        return Answer(
            failures=dict.fromkeys(everything, late), reply=None, latency_s=None,
            error_class=ErrorClass.TIMEOUT, error="timed out after 30 s",
        )  # fmt: skip
    failures: dict[str, Failure] = {}
    reply = JSON_REPLY
    if chance < 0.06:
        reply = CUT_REPLY
        failures["valid-json"] = (
            "parses as JSON",
            "expected a JSON document, found the end of the text at column 56",
            CUT_REPLY[-24:],
            FailReason.TRANSFORM,
        )
    if source.random() < (0.55 if input_id == "double-charge" else 0.09):
        failures["grounded"] = (
            "amount is the order's",
            "expected an amount of at most 24.9, found 249.0",
            '"amount": 249.0',
            FailReason.CONDITION,
        )
    elif source.random() < 0.03:
        failures["grounded"] = (
            "names a policy",
            "expected one of the 14 policies to be cited, found none",
            "as our rules say",
            FailReason.CONDITION,
        )
    retried = source.random() < 0.04
    return Answer(
        failures=failures,
        reply=reply,
        latency_s=latency_of(source),
        attempts=2 if retried else 1,
        attempt_errors=("503 Service Unavailable",) if retried else (),
        tokens=(380 + source.randrange(120), 60 + source.randrange(80)),
        cost_usd=0.003 + source.random() * 0.004,
        tool_calls=CALLS,
    )


# --- Records ----------------------------------------------------------------------------------


def sequential_pass() -> RunRecord:
    """A required rate, shown as soon as it may be, and a criterion that shares its trials."""
    asked = [
        criterion(
            "answers-correctly",
            at_least=0.90,
            margin=0.10,
            power=0.80,
            origin="SLA",
            contract_ref="SLA v2 §4.3",
        ),
        criterion("no-pii", never_fails=True, min_probes=300, category="SAFETY"),
    ]
    plan = plan_of("support-agent", QUESTIONS, asked)
    return record_of(plan, run(plan, steady(0.95, "answers-correctly")))


def fixed_fail(**options: Any) -> RunRecord:
    """Three criteria on 200 trials that all count, failures of every kind, one input far worse."""
    asked = [
        criterion("valid-json", at_least=0.90, origin="SLO", contract_ref="SLO v2.1 §4.3"),
        criterion("grounded", at_least=0.90, category="CORRECTNESS"),
        criterion("no-pii", never_fails=True, category="SAFETY"),
    ]
    plan = plan_of(
        "support-agent",
        QUESTIONS,
        asked,
        trials=200,
        curtail=False,
        budget=Budget(usd=5),
        analysis="intent-to-treat",
        **options,
    )
    return record_of(plan, run(plan, troubled))


def observational_pass() -> RunRecord:
    """Nothing failed, and nothing is claimed."""
    asked = [criterion("blocks-pii", never_fails=True, trials=120, min_probes=300)]
    plan = plan_of("guardrail", QUESTIONS[:6], asked)
    return record_of(plan, run(plan, steady(1.0)))


def regression_inconclusive() -> RunRecord:
    """Against a baseline, with guards, cut short by its token budget."""
    baseline = Baseline(
        identifier="support-agent-2026-02",
        contract="support-agent",
        created_at=STARTED - timedelta(days=21),
        criteria={"grounded": CriterionBaseline(trials=1000, passed=951, structure="77aa01")},
        covariates={"region": "eu-west", "day": "WEEKDAY"},
        factors={"model": "small-2"},
        valid_days=30,
        epoch=2,
    )
    guards = (
        Guard(
            code="covariate-mismatch",
            severity=Severity.MAJOR,
            message="The baseline was measured on a WEEKDAY, this run on a WEEKEND.",
            criterion="grounded",
            overridden=True,
        ),
        Guard(
            code="baseline-near-expiry",
            severity=Severity.MINOR,
            message="The baseline expires in 9 days.",
        ),
    )
    plan = plan_of(
        "support-agent",
        QUESTIONS,
        [criterion("grounded", no_worse_than="baseline", trials=150)],
        baseline=baseline,
        guards=guards,
        curtail=False,
        budget=Budget(tokens=50_000),
        analysis="intent-to-treat",
    )
    trials = run(plan, steady(0.94, "grounded"), stop_after=98)
    return record_of(plan, trials, stop=StopReason.TOKEN_BUDGET)


def each_input() -> RunRecord:
    """Every input judged on its own; one of them is dead."""
    asked = [criterion("books-a-table", at_least=0.90, margin=0.30, power=0.80, each_input=True)]
    plan = plan_of("booking-agent", QUESTIONS[:8], asked)

    def answer(source: Random, input_id: str) -> Answer:
        rate = 0.05 if input_id == "cancel-plan" else 0.97
        return steady(rate, "books-a-table")(source, input_id)

    return record_of(plan, run(plan, answer))


def latency() -> RunRecord:
    """Three percentiles: a limit kept, a limit missed, a baseline matched."""
    times = sorted(latency_of(Random(f"base/{i}"), scale=0.65) for i in range(400))
    baseline = Baseline(
        identifier="search-2026-02",
        contract="search",
        created_at=STARTED - timedelta(days=3),
        criteria={"answers": CriterionBaseline(trials=410, passed=400, structure="77aa01")},
        latencies_s={"questions": tuple(times)},
        run_trials={"questions": 410},
    )
    promised = Latency(
        constraints=(
            LatencyConstraint(percentile="p50", limit_s=1.0),
            LatencyConstraint(percentile="p95", limit_s=1.2),
            LatencyConstraint(percentile="p90"),
        ),
        enforced=True,
    )
    asked = [criterion("answers", at_least=0.85, trials=240)]
    plan = plan_of(
        "search", QUESTIONS, asked, latency=promised, baseline=baseline, rule="exact", curtail=False
    )
    return record_of(plan, run(plan, steady(0.95, "answers")))


def budget_stop() -> RunRecord:
    """A sequential run whose money ended before its evidence."""
    asked = [
        criterion("answers-correctly", at_least=0.90, margin=0.05, power=0.80),
        criterion("no-pii", never_fails=True),
    ]
    plan = plan_of("support-agent", QUESTIONS, asked, budget=Budget(usd=0.2))
    trials = run(plan, steady(0.88, "answers-correctly"), stop_after=50)
    said = "The budget of $0.20 was used up after 50 trials."
    return record_of(plan, trials, stop=StopReason.MONEY_BUDGET, message=said)


def smoke() -> RunRecord:
    """A smoke run: worded as one."""
    asked = [criterion("answers", at_least=0.80, trials=20, origin="SLO")]
    plan = plan_of("nightly-canary", QUESTIONS[:5], asked, intent=Intent.SMOKE, curtail=False)
    return record_of(plan, run(plan, steady(1.0, "answers")))


def measured() -> RunRecord:
    """A baseline: counted, and nothing decided."""
    asked = [criterion("grounded", no_worse_than="baseline", trials=60)]
    plan = plan_of("support-agent", QUESTIONS, asked, measuring=True)
    return record_of(plan, run(plan, steady(0.95, "grounded")))


def refused() -> RunRecord:
    """A design that cannot support its claim: no trial was run."""
    asked = [criterion("answers", at_least=0.95, trials=20)]
    plan = plan_of("search", QUESTIONS, asked, intent=Intent.SMOKE)
    finding = decide_compliance(
        "answers", Tally(trials=0, passed=0), 0.95, planned_trials=20, rule="wilson"
    )
    record = record_of(replace(plan, intent=Intent.VERIFICATION), [])
    composed = compose([finding])
    verdict = replace(
        record.verdict,
        decision=None,
        findings=composed.findings,
        refusals=composed.refusals,
        triggers=(),
    )
    return replace(record, verdict=verdict)


def session(source: Random, input_id: str) -> Answer:
    """An agent that refunds an order over MCP: straight on, after a mistake, or in a circle."""
    chance, order = source.random(), {"order": input_id}
    mistaken = {"name": "find_order", "server": "shop", "args": {"order": "A-0"}}
    wrong = mistaken | {"error": "there is no order A-0"}
    right = {"name": "find_order", "server": "shop", "args": order, "result": '{"paid": 24.9}'}
    paid = {"name": "refund", "server": "bank", "args": order | {"amount": 24.9}, "result": "done"}
    calls: list[Mapping[str, Any]] = [right, paid]
    failures: dict[str, Failure] = {}
    if chance < 0.2:
        calls = [wrong] * (3 + source.randrange(5))
        why = "'refund' was not called"
        failures = {"refunds": ("calls 'refund'", why, "A-0", FailReason.CONDITION)}
        failures |= {"no-loops": ("", "failed again and again", "A-0", FailReason.CONDITION)}
    elif chance < 0.5:
        calls = [wrong, right, paid]
    elif chance < 0.55:
        calls = [right, paid | {"args": order | {"note": "as agreed with the customer " * 40}}]
        failures = {"refunds": ("the amount", "no amount", "", FailReason.CONDITION)}
    timed, at = [], 0.1
    for turn, call in enumerate(calls, start=1):
        took = source.uniform(0.05, 0.4)
        timed.append({**call, "turn": turn, "started_s": at, "duration_s": took})
        at += took + source.uniform(0.1, 0.6)
    turns = [{"role": "assistant", "content": "x" * source.randrange(5, 60)} for _ in range(3)]
    told = {"tool_calls": timed, "conversation": {"turns": turns, "tokens": {"total": 900}}}
    return Answer(
        failures=failures,
        reply="Sorry." if failures else "Refunded.",
        latency_s=at,
        tool_calls=tuple(timed),
        messages=(
            ("user", f"Please refund order {input_id}."),
            *(("assistant", turn["content"]) for turn in turns),
        ),
        shape=read_trace(told),
        setup_s=0.4,
    )


def agent() -> RunRecord:
    """Sessions with tools, of which some go in circles, and what repeating them shows."""
    asked = [criterion(name, at_least=0.6, trials=36) for name in ("refunds", "no-loops")]
    gates = {"reliability": Reliability(), "stability": Stability(), "metrics": Metrics()}
    plan = plan_of("refund-agent", QUESTIONS[:3], asked, gates=gates, curtail=False)
    return record_of(plan, run(plan, session))


def large(trials: int = 10_000, failing: float = 0.12) -> RunRecord:
    """Many trials with long replies over many inputs."""
    names = ("valid-json", "grounded")
    asked = [criterion(name, at_least=0.85, trials=trials) for name in names]
    inputs = [f"ticket-{number:04d}" for number in range(400)]
    plan = plan_of("support-agent", inputs, asked, curtail=False)

    def answer(source: Random, input_id: str) -> Answer:
        plain = steady(1 - failing, *names)(source, input_id)
        return replace(plain, reply=f"{JSON_REPLY} <b>&</b> " * 60, tool_calls=CALLS)

    return record_of(plan, run(plan, answer))


def hostile() -> RunRecord:
    """Markup, escapes and overrides wherever a string can come from outside."""
    name = f"crit {HOSTILE}"
    plan = plan_of(
        f"contract {HOSTILE}",
        [f"in {HOSTILE}", "plain"],
        [criterion(name, at_least=0.5, trials=30, contract_ref=HOSTILE, category=HOSTILE)],
        curtail=False,
        covariates={f"k{HOSTILE}": f"v{HOSTILE}"},
        factors={HOSTILE: HOSTILE},
        guards=(Guard(code=HOSTILE, severity=Severity.MINOR, message=HOSTILE, criterion=name),),
    )

    def answer(source: Random, input_id: str) -> Answer:  # noqa: ARG001
        failed: dict[str, Failure] = {name: (HOSTILE, HOSTILE, HOSTILE, FailReason.CONDITION)}
        return Answer(
            failures=failed if source.random() < 0.5 else {},
            reply=f"<!-- {HOSTILE} --> ]]> \ud800 \U000e0041 שלום",
            error=HOSTILE,
            attempts=2,
            attempt_errors=(HOSTILE,),
            tool_calls=(
                {"name": HOSTILE, "server": HOSTILE, "args": {HOSTILE: HOSTILE}},
                {"name": HOSTILE, "args": HOSTILE * 9, "result": HOSTILE, "started_s": 0.1},
                {"error": HOSTILE * 9, "started_s": 0.2, "duration_s": 1e300, "turn": HOSTILE},
                {"unnamed": HOSTILE},
            ),
        )

    return record_of(plan, run(plan, answer), run_id=HOSTILE, message=HOSTILE, plan_hash=HOSTILE)


@dataclass(frozen=True, slots=True)
class Asks:
    """A postcondition that can be wrong, as a judge can."""

    errors: Confusion | None = None
    advisory: tuple[str, ...] = ()

    def __call__(self, _: object) -> bool:
        return True


LABELS = Confusion(true_pass=208, false_pass=3, true_fail=26, false_fail=3)
UNMEASURED = "the judge has no gold set"


def judged(passed: int = 406, trials: int = 500, **question: Any) -> RunRecord:
    """A measured judge that passes this many trials; its errors may leave open what that shows."""
    asked = [Criterion("helpful", Asks(errors=LABELS), **{"at_least": 0.75, **question})]
    plan = plan_of("shop", QUESTIONS[:4], asked, trials=trials, curtail=False)
    failure: Failure = ("judged", "the judge says no", "", FailReason.CONDITION)
    places = iter(range(10**6))

    def answer(_: Random, input_id: str) -> Answer:  # noqa: ARG001
        # Passes and failures spread as evenly as they go.
        place = next(places)
        passes = (place + 1) * passed // trials > place * passed // trials
        return Answer(failures={} if passes else {"helpful": failure})

    return record_of(plan, run(plan, answer))


def advisory(*others: Criterion) -> RunRecord:
    """A judge that nobody measured, beside others or alone."""
    asked = [Criterion("helpful", Asks(advisory=(UNMEASURED,)), at_least=0.75), *others]
    plan = plan_of("shop", QUESTIONS[:4], asked, trials=200, curtail=False)
    return record_of(plan, run(plan, steady(0.9, "helpful")))


SHAPES: Mapping[str, Callable[[], RunRecord]] = {
    "sequential-pass": sequential_pass,
    "fixed-fail": fixed_fail,
    "observational": observational_pass,
    "regression-inconclusive": regression_inconclusive,
    "each-input": each_input,
    "latency": latency,
    "budget-stop": budget_stop,
    "smoke": smoke,
    "measured": measured,
    "refused": refused,
    "agent": agent,
    "judged": judged,
    "advisory": advisory,
    "hostile": hostile,
}
"""Every shape of a run but the large one."""
