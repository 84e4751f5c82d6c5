"""How a benchmark is timed: CPU seconds, in interleaved rounds, the least and the median kept.

CPU instead of the clock, and every round visits each benchmark of a group once: other work on the
machine then disturbs a benchmark and its reference alike, and their ratio least of all.
"""

from __future__ import annotations

import gc
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from time import perf_counter, process_time
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """One line of the table: an expression in this process, or an interpreter of its own."""

    name: str
    expression: str = ""
    setup: str = ""
    """Statements run once, untimed: imports and data."""
    arguments: tuple[str, ...] = ()
    """The interpreter's, where a whole process is timed, start to exit."""
    reference: str | None = None
    """The benchmark of the same group that the ratio is taken against."""
    ratio_goal: float | None = None
    seconds_goal: float | None = None
    level: int = 0
    """The least effort that includes it: 0 quick, 1 ordinary, 2 full."""
    waits: bool = False
    """Whether the clock's time counts, not CPU: what is measured is waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long to look."""

    level: int
    rounds: int
    sample_seconds: float
    """An expression is repeated until a sample covers about this much CPU."""
    budget_seconds: float
    """A benchmark that has taken this long is not sampled again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What came of a benchmark; `skipped` says why nothing did."""

    benchmark: Benchmark
    least: float = math.nan
    median: float = math.nan
    ratio: float | None = None
    skipped: str | None = None

    @property
    def met(self) -> bool | None:
        """Whether the goal is met, by the least time; None without a goal or a measurement."""
        if self.ratio is not None and self.benchmark.ratio_goal is not None:
            return self.ratio <= self.benchmark.ratio_goal
        if self.skipped is None and self.benchmark.seconds_goal is not None:
            return self.least <= self.benchmark.seconds_goal
        return None


class CannotRunError(Exception):
    """The interpreter that was started failed; the message is its last line."""


def measure(benchmarks: tuple[Benchmark, ...], effort: Effort) -> list[Timing]:
    """Time in turn every benchmark that this effort includes."""
    chosen = [benchmark for benchmark in benchmarks if benchmark.level <= effort.level]
    samplers: dict[str, Callable[[], float]] = {}
    values: dict[str | None, object] = {}
    skipped: dict[str, str] = {}
    for each in chosen:
        try:
            samplers[each.name], value = _prepare(each, effort.sample_seconds)
        except (ImportError, CannotRunError) as error:
            skipped[each.name] = str(error).partition(" (")[0]  # without the file's path
            continue
        expected = values.get(each.reference)
        if isinstance(value, float) and isinstance(expected, float):
            # A peer is only worth timing at the same number.
            assert math.isclose(value, expected, rel_tol=1e-8), (each.name, value, expected)
        values[each.name] = value
    samples = _sample(samplers, effort)
    timings = []
    for each in chosen:
        if each.name in skipped:
            timings.append(Timing(benchmark=each, skipped=skipped[each.name]))
            continue
        own, other = samples[each.name], samples.get(each.reference or "")
        ratio = min(own) / min(other) if other else None
        timings.append(Timing(benchmark=each, least=min(own), median=median(own), ratio=ratio))
    return timings


def _prepare(benchmark: Benchmark, least: float) -> tuple[Callable[[], float], object]:
    """A function that takes one sample, and the value the expression has."""
    if benchmark.arguments:
        _process_cpu(benchmark.arguments)  # compiles what is imported
        return (lambda: _process_cpu(benchmark.arguments)), None
    names: dict[str, Any] = {}
    exec(benchmark.setup, names)
    call: Callable[[], object] = eval(f"lambda: {benchmark.expression}", names)
    value = call()
    timer = perf_counter if benchmark.waits else process_time
    repeats = max(1, math.ceil(least / max(_call_time(call, 1, timer), 1e-7))) if least else 1
    return (lambda: _call_time(call, repeats, timer)), value


def _sample(samplers: dict[str, Callable[[], float]], effort: Effort) -> dict[str, list[float]]:
    samples: dict[str, list[float]] = {name: [] for name in samplers}
    taken = dict.fromkeys(samplers, 0.0)
    for _ in range(effort.rounds):
        for name, sampler in samplers.items():
            if not samples[name] or taken[name] < effort.budget_seconds:
                begun = perf_counter()
                samples[name].append(sampler())
                taken[name] += perf_counter() - begun
    return samples


def _process_cpu(arguments: tuple[str, ...]) -> float:
    before = getrusage(RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    after = getrusage(RUSAGE_CHILDREN)
    if done.returncode:
        raise CannotRunError((done.stderr.strip() or "it failed").splitlines()[-1])
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _call_time(call: Callable[[], object], repeats: int, timer: Callable[[], float]) -> float:
    """Seconds per call, collecting no garbage that other benchmarks left."""
    gc.disable()
    try:
        begun = timer()
        for _ in range(repeats):
            call()
        return (timer() - begun) / repeats
    finally:
        gc.enable()
