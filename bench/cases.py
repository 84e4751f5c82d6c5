"""What is measured, and against which goal."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from bench.measure import Benchmark

_FOLDER = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, _FOLDER, ignore_errors=True)
#: An installed package is compiled; whatever the environment says, so is what is measured here.
_COMPILED = ("-E", "-X", f"pycache_prefix={_FOLDER / 'compiled'}")
_BARE = "python -c pass"
#: The goals for a run: what it may take of its own, and for each trial.
_OWN_S = 2e-3
_TRIAL_S = 15e-6
_DECIDE = (
    "from trialwise.model.evidence import Tally;"
    "from trialwise.procedures.compliance import decide_compliance;"
    "from trialwise.procedures.regression import decide_regression;"
)
_FIRST_VERDICT = _DECIDE + "decide_compliance('valid', Tally(trials=100, passed=97), 0.9)"
_DESIGN = "from trialwise.stats.sequential import SequentialDesign;"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Benchmarks that are timed in turn, and what to know about them."""

    title: str
    note: str
    benchmarks: tuple[Benchmark, ...]


def _start(name: str, *arguments: str, goal: float | None = None, level: int = 0) -> Benchmark:
    return Benchmark(
        name=name,
        arguments=(*_COMPILED, *(arguments or ("-c", name))),
        reference=_BARE if name != _BARE else None,
        ratio_goal=goal,
        level=level,
    )


def _command(name: str, *arguments: str, goal: float | None = None) -> Benchmark:
    return _start(name, "-m", "trialwise.cli.main", *arguments, goal=goal)


def _suite(name: str = "trialwise", promise: str = "at_least: 90%") -> str:
    """A suite of four lines in a folder of its own; its service is always right."""
    (_FOLDER / "agent.py").write_text("def answer(question):\n    return '555'\n")
    suite = _FOLDER / f"{name}.yaml"
    suite.write_text(
        'service: {python: "agent:answer"}\n'
        'inputs: ["What is 15 * 37?", "And 37 * 15?"]\n'
        "criteria:\n"
        f"  - {{name: answers, contains: '555', {promise}}}\n"
    )
    return f"--suite={suite}"


def _large_suite(name: str, inputs: int, promise: str, criteria: int = 200) -> str:
    """A suite with many criteria whose inputs are in a file of their own."""
    lines = (f'{{"id": "q{n}", "value": "question {n}"}}\n' for n in range(inputs))
    (_FOLDER / f"{name}.jsonl").write_text("".join(lines))
    suite = _FOLDER / f"{name}.yaml"
    suite.write_text(
        'service: {python: "agent:answer"}\n'
        f"inputs: {{jsonl: {name}.jsonl}}\n"
        "criteria:\n"
        + "".join(f"  - {{name: c{n}, contains: '{n}', {promise}}}\n" for n in range(criteria))
    )
    return f"--suite={suite}"


def _planning(name: str, suite: str) -> Benchmark:
    check = _command(name, "check", suite)
    return replace(check, reference=None, seconds_goal=2.0, level=1)


def _verdict(procedure: str, rule: str, trials: int, rate: float) -> Benchmark:
    passed = round(rate * trials)
    against = rate - 0.05 if procedure == "compliance" else "baseline"
    return Benchmark(
        name=f"{procedure}, {rule}, n = {trials:,}, rate {rate}",
        setup=f"{_DECIDE} baseline = Tally(trials={trials}, passed={passed});"
        f"tally = Tally(trials={trials}, passed={passed - trials // 50})",
        expression=f"decide_{procedure}('valid', tally, {against}, rule={rule!r})",
        seconds_goal=1e-3,
    )


def _cutoff(rule: str, baseline: int, rate: float) -> Benchmark:
    return Benchmark(
        name=f"cutoff, {rule}, baseline of {baseline:,}, rate {rate}",
        setup="from trialwise.stats.regression_cutoffs import regression_cutoff",
        expression=f"regression_cutoff({round(rate * baseline)}, {baseline}, 100_000, {rule=})",
        seconds_goal=50e-3,
    )


def _scheme(origin: str, baseline: int) -> Benchmark:
    return Benchmark(
        name=f"scheme, {origin}, baseline of {baseline}, loss of 10 points",
        setup="from trialwise.stats.staged_regression import find_scheme",
        expression=f"find_scheme.__wrapped__({baseline}, 0.1)",
        seconds_goal=2.0,
    )


def _design(cap: int, *, goal: float | None, level: int) -> Benchmark:
    return Benchmark(
        name=f"search, 0.91 vs 0.81, cap {cap:,}",
        setup=_DESIGN,
        expression=f"SequentialDesign.optimal(0.91, 0.81, cap={cap})",
        seconds_goal=goal,
        level=level,
    )


def _strict(rate: float, level: float) -> Benchmark:
    """A strict design as long as none that ships; the goal is the one of its promise."""
    return Benchmark(
        name=f"strict search, required {rate}, errors {level}, cap 2,000",
        setup=_DESIGN,
        expression=f"SequentialDesign.strict({rate}, cap=2000, alpha={level}, beta={level})",
        seconds_goal=2,
        level=1,
    )


def _characteristic(cap: int) -> Benchmark:
    return Benchmark(
        name=f"operating characteristic, cap {cap:,}",
        setup=f"{_DESIGN} design = SequentialDesign.wald(0.9, 0.8, cap={cap})",
        expression="design.operating_characteristic(0.85)",
    )


def _same(setup: str, ours: str, *peers: tuple[str, str, str]) -> tuple[Benchmark, ...]:
    """Our expression, and each peer's by name, import and expression; all give one number."""
    first = Benchmark(name=ours, setup=setup, expression=ours)
    return first, *(
        Benchmark(name=name, setup=load, expression=expression, reference=ours)
        for name, load, expression in peers
    )


def _fisher(n: int, k: int, x: int) -> tuple[Benchmark, ...]:
    table = [[k, n - k], [x, n - x]]
    return _same(
        "from trialwise.stats.unconditional import fisher_one_sided",
        f"fisher_one_sided({k}, {n}, {x}, {n})",
        (
            f"scipy fisher_exact({table})",
            "from scipy.stats import fisher_exact",
            f"fisher_exact({table}, alternative='greater').pvalue",
        ),
    )


def _trials(count: int, *, service: str = "trivial", level: int = 0) -> Benchmark:
    kind = "async" if service == "trivial" else "sync"
    return Benchmark(
        name=f"{count:,} trials of a trivial {kind} function",
        setup="from bench import engine",
        expression=f"engine.run({count}, service=engine.{service})",
        reference=f"{count:,} bare calls",
        seconds_goal=_OWN_S + _TRIAL_S * count,
        level=level,
    )


def _suite_trials(count: int, service: str) -> Benchmark:
    kind = "async" if service == "trivial" else "plain"
    return Benchmark(
        name=f"{count:,} trials of a trivial {kind} function in a suite",
        setup="from bench import engine",
        expression=f"engine.run_suite({count}, service={service!r})",
        reference=f"{count:,} bare calls",
        seconds_goal=_TRIAL_S * count,
        level=1,
    )


def _bare(count: int, *, level: int = 0) -> Benchmark:
    return Benchmark(
        name=f"{count:,} bare calls",
        setup="from bench import engine",
        expression=f"engine.bare_calls({count})",
        level=level,
    )


_SUITE = _suite()
#: 25 trials can show this rate.
_FIXED = _suite("fixed", "at_least: 85%")
_MARGIN_RUN = "a first run, required 90 %, margin 10 %"
_TEST = "from scipy.stats import binomtest; test = binomtest(90, 100)"
_CONFINT = "from statsmodels.stats.proportion import proportion_confint"
_BINOM = "from scipy.stats import binom"
_TAIL = "from trialwise.stats.binomial import binomial_tail"

GROUPS = (
    Group(
        title="Cold start",
        note="CPU of a whole process, start to exit, its modules compiled before; the ratio is to "
        "the bare interpreter. The ratio of a first run, whose design ships, is to one with the "
        "margin that 0.1.0 supplied.",
        benchmarks=(
            _start(_BARE, "-c", "pass"),
            _start("import trialwise", goal=3),
            _start("import trialwise.stats", goal=3),
            _start("from trialwise.stats import wilson_lower", goal=3),
            _start("a first compliance verdict", "-c", _FIRST_VERDICT),
            _command("trialwise --help", "--help", goal=5),
            _command("trialwise check", "check", _SUITE),
            _command("a 25-trial run of a suite", "run", "--trials=25", _FIXED, goal=25),
            _command(_MARGIN_RUN, "run", _suite("margin", "at_least: 90%, margin: 10%")),
            replace(
                _command("a first run, required 90 %", "run", _SUITE, goal=1.1),
                reference=_MARGIN_RUN,
            ),
            _start("import scipy.stats", level=1),
            _start("import statsmodels.stats.proportion", level=1),
        ),
    ),
    Group(
        title="A run of trials",
        note="CPU of a whole run with its journal, its plan, its verdict and its record, after "
        "imports; the goal is 2 ms for the run and 15 µs for each trial, and a straight line. In a "
        "suite, `trialwise run` reads the suite, shows progress and writes its summary, too. The "
        "ratio is to the same calls in a bare loop.",
        benchmarks=(
            Benchmark(
                name="a run of 5 trials",
                setup="from bench import engine",
                expression="engine.run(5)",
                seconds_goal=_OWN_S,
            ),
            *(
                one
                for count, level in ((1000, 0), (10_000, 1), (100_000, 2))
                for one in (_bare(count, level=level), _trials(count, level=level))
            ),
            _trials(10_000, service="trivial_sync", level=1),
            *(_suite_trials(10_000, service) for service in ("trivial", "trivial_sync")),
        ),
    ),
    Group(
        title="Large plans",
        note="CPU of `trialwise check` with 200 criteria, start to exit: everything is read, "
        "planned and forecast.",
        benchmarks=(
            _planning(
                "200 criteria on 10,000 inputs, 1,000 trials",
                _large_suite("fixed-large", 10_000, "at_least: 90%, trials: 1000"),
            ),
            _planning(
                "200 criteria decided early on 10,000 inputs",
                _large_suite("early-large", 10_000, "at_least: 90%"),
            ),
            _planning(
                "200 criteria decided for each of 1,000 inputs",
                _large_suite("each-large", 1000, "at_least: 90%, each_input: true"),
            ),
        ),
    ),
    Group(
        title="Trials that wait",
        note="Time by the clock: 200 trials of an async service that takes 50 ms, 50 at once.",
        benchmarks=(
            Benchmark(
                name="a bare event loop",
                setup="from bench import engine",
                expression="engine.bare_waits(200, 50)",
                waits=True,
            ),
            Benchmark(
                name="a run, journal on",
                setup="from bench import engine",
                expression="engine.run(200, service=engine.waiting, concurrency=50)",
                reference="a bare event loop",
                ratio_goal=1.15,
                waits=True,
            ),
        ),
    ),
    Group(
        title="A verdict from counts",
        note="The whole finding, after import. A regression's baseline has as many trials as its "
        "test; rates near 0.5 are the slowest.",
        benchmarks=tuple(
            _verdict(procedure, rule, trials, rate)
            for procedure in ("compliance", "regression")
            for rule in ("wilson", "exact")
            for trials, rate in ((1000, 0.9), (1000, 0.5))
        ),
    ),
    Group(
        title="Regression cutoffs at n = 100,000",
        note="Cutoff, achieved size and the false-alarm probability with the baseline random.",
        benchmarks=(
            *(_cutoff(rule, 100_000, rate) for rule in ("wilson", "exact") for rate in (0.9, 0.5)),
            _cutoff("wilson", 1000, 0.9),
        ),
    ),
    Group(
        title="A comparison that is decided after every trial",
        note="Its boundaries for all baselines of a size. Against 475 of 500 it takes 39 trials on "
        "average if nothing has changed and 38 after a drop to 85 %; the rule that it replaced "
        "took 53 and 49, a fixed test with less power 61.",
        benchmarks=(
            _scheme("shipped", 500),
            *(_scheme("searched", size) for size in (120, 350, 900)),
        ),
    ),
    Group(
        title="The same number from other libraries",
        note="After import; agreement to 1e-8 is checked first. The ratio is the peer's CPU over "
        "ours: above 1 we are faster, below 1 we lose.",
        benchmarks=(
            *_same(
                "from trialwise.stats.rate_intervals import wilson_interval",
                "wilson_interval(90, 100).low",
                ("scipy proportion_ci, wilson", _TEST, "test.proportion_ci(method='wilson').low"),
                (
                    "statsmodels proportion_confint, wilson",
                    _CONFINT,
                    "proportion_confint(90, 100, method='wilson')[0]",
                ),
            ),
            *_same(
                "from trialwise.stats.rate_intervals import clopper_pearson",
                "clopper_pearson(90, 100).low",
                ("scipy proportion_ci, exact", _TEST, "test.proportion_ci(method='exact').low"),
                (
                    "statsmodels proportion_confint, beta",
                    _CONFINT,
                    "proportion_confint(90, 100, method='beta')[0]",
                ),
                (
                    "scipy betaincinv, both ends",
                    "from scipy.special import betaincinv",
                    "(betaincinv(90, 11, 0.025), betaincinv(91, 10, 0.975))[0]",
                ),
            ),
            *_fisher(100, 95, 86),
            *_same(
                _TAIL,
                "binomial_tail(950, 1000, 0.93)",
                ("scipy binom.sf", _BINOM, "binom.sf(949, 1000, 0.93)"),
                ("scipy bdtrc", "from scipy.special import bdtrc", "bdtrc(949, 1000, 0.93)"),
            ),
        ),
    ),
    Group(
        title="Sequential designs",
        note="The searched designs do not ship with the package and no cache is used; cap 10,000 "
        "needs `--full`.",
        benchmarks=(
            Benchmark(
                name="shipped, 0.9 vs 0.8, cap 50",
                setup=_DESIGN,
                expression="SequentialDesign.optimal(0.9, 0.8, cap=50)",
            ),
            _design(50, goal=1, level=0),
            _design(200, goal=1, level=1),
            _design(1000, goal=None, level=1),
            _design(10_000, goal=20, level=2),
            Benchmark(
                name="strict shipped, required 0.9, cap 215",
                setup=_DESIGN,
                expression="SequentialDesign.strict(0.9)",
            ),
            *(_strict(rate, level) for rate, level in ((0.9, 0.05), (0.7, 0.025), (0.5, 0.01))),
            _characteristic(50),
            _characteristic(10_000),
        ),
    ),
)
