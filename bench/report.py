"""The two ways a run is shown: a table in the terminal, and `docs/benchmarks.md`."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from bench.cases import Group
from bench.measure import Timing

Results = list[tuple[Group, list[Timing]]]

_INTRODUCTION = """\
# Benchmarks

Recompute this page with `python -m bench --full --markdown docs/benchmarks.md` in the development
environment. `make bench` prints the same table from a shorter look and without the largest design;
`--quick` only proves that everything runs.

Times are CPU time, of this process or of the processes it starts, not the clock's unless a table
says so, and the machine
is not reserved: other work may run beside. **The CPU ratios are what to trust**, because a
benchmark and its reference take turns, round by round. Ratios and goals use the least time of all
rounds, which is the work with the least disturbance; the median stands beside it.
"""

_CHOOSING = """\
## Trials of a choice between arms

`python -m bench.choosing` simulates `choose` at a smallest difference of 10 points, with seeds.
All numbers are trials of all arms together; a wrong answer comes in at most 5 % of runs by proof.
Equal numbers are the smallest design that tries all arms equally often and names the highest rate
in 95 % of runs, computed exactly for these very rates.

- 90 % and 80 %: 136 with equal numbers, 166 ± 5 with `choose`, 84 ± 1 with `--break-ties`.
  Bechhofer, Kiefer and Sobel's method needs 74 and has to know the odds; without them no method
  needs fewer than 72.1 (by the information between the two orders). We lose to it here.
- 90 % and four at 80 %: 590, 409 ± 8 and 305 ± 4; theirs 321 with elimination.
- 90 % and nine at 80 %: 1,480, 823 ± 21 and 691 ± 14; theirs 707.
- Five at 80 %: `choose` says "tied" in 76 % of runs, after 933 ± 20 trials; `--break-ties` names
  one after 564 ± 12. Theirs names one after 531.
"""

_CONCURRENCY = """\
## What concurrency costs in trials

`python -m bench.concurrency` lets a simulated clock say when each trial returns: lognormal
latencies (sigma 1), a required rate of 90 %, 400 runs a line, with seeds. Results count in the
order of inputs, so a decision may wait for one slow trial. The table has the trials that the
decision rests on and those that were started beyond them. Before, what was started ahead of a slow
trial did not depend on the results after it; now all results say which trials will probably be
needed.

| true rate | in flight | needed | started beyond | at most | beyond, before | at most, before |
|--:|--:|--:|--:|--:|--:|--:|
| 100 % | 4 | 40 | 0.0 | 0 | 0.6 | 37 |
| 100 % | 8 | 40 | 0.0 | 0 | 8.3 | 58 |
| 100 % | 20 | 40 | 0.6 | 1 | 32.8 | 58 |
| 100 % | 50 | 40 | 27.0 | 28 | 45.7 | 58 |
| 97 % | 4 | 91 | 0.1 | 10 | 1.0 | 27 |
| 97 % | 8 | 88 | 0.1 | 11 | 9.1 | 61 |
| 97 % | 20 | 87 | 3.5 | 15 | 32.8 | 96 |
| 97 % | 50 | 88 | 25.6 | 95 | 42.2 | 96 |
| 95 % | 4 | 134 | 0.4 | 19 | 2.1 | 32 |
| 95 % | 8 | 138 | 1.1 | 33 | 7.9 | 58 |
| 95 % | 20 | 136 | 5.1 | 39 | 20.9 | 96 |
| 95 % | 50 | 130 | 20.6 | 111 | 28.8 | 96 |
| 80 % | 4 | 72 | 3.3 | 27 | 6.2 | 52 |
| 80 % | 8 | 77 | 7.3 | 46 | 13.4 | 85 |
| 80 % | 20 | 75 | 15.5 | 90 | 28.9 | 120 |
| 80 % | 50 | 72 | 27.5 | 160 | 39.0 | 133 |
"""

_COMMENTARY = """\
## What to read out of it, and what not

- The statistics are plain Python on purpose: one number from counts needs no array library, so a
  check in a hook or in CI does not wait for one to load. That start is by far the largest
  difference on this page; after it, one number differs by a millisecond or less.
- The trade has a losing side. Compiled kernels (`bdtrc`, `betaincinv`) and one vectorised call over
  many counts beat our loop. Who needs 10,000 tails at once should call scipy; no verdict does.
- `from trialwise.stats import …` pays mostly for the standard library's `dataclasses` and `typing`,
  which every function's module needs; `import trialwise.stats` alone loads neither.
- The lines for scipy's `proportion_ci` leave out the `binomtest` that a caller with counts must run
  first: they are generous to scipy.
- A regression verdict spends most of its time on the exact false-alarm probability with the
  baseline's own sampling error. That grows with the square root of the baseline's trials, so a
  verdict against a far larger baseline than those above takes longer.
- A run's own cost matters only where the service costs nothing: at 50 ms a trial it is a
  thousandth of the time.
- A trial takes about 80 bytes of memory: columns hold what decisions look at, and texts are read
  from the journal when somebody asks for them. The goal is 150 MB for 1,000,000 trials, and it is
  met. A run of 10,000 takes 41 MB, of 100,000 takes 51 MB and of 1,000,000 takes 132 MB. Of the
  latter, `--resume` after a kill near the end takes 133 MB, `show` 100 MB, `show --verify` 119 MB,
  and a report 138 MB as HTML and about 100 MB as Markdown, JSON or JUnit; the HTML page has 110 kB.
  Each reads the journal once, at 7 to 13 s of CPU. `python -m bench.memory` measures this.
- `check` of a suite with 10,000 short inputs in the suite file itself takes 1.5 s of CPU, most
  of it in the YAML parser; a JSONL or CSV file is faster.
- The times of a trial depend on the machine. In the same minutes, 10,000 trials through a suite
  file took 16 to 23 µs each for an async function and 14 to 19 µs for a plain one beyond what
  a run of 10 takes; version 0.1.0 took 42 to 50 and 218 to 238 µs. A trial takes 108,000
  instructions (`valgrind --tool=cachegrind`, to about 3 %), a bare call of the async function
  1,800. Of them about 8,000 write two floats, 4,000 derive the seed, 5,000 seal and write the
  line of the journal and 4,000 collect garbage.
- A run of 5 trials took 6.2 ms of CPU at best and 8.5 to 9.0 ms at the median of 520 runs, each in
  an empty store on a loaded machine; in the same minutes 0.1.0 took 6.5 and 8.9 to 9.9 ms. It
  takes 13.2 million instructions (0.1.0: 15.0 million) in many small places: it writes the plan
  and the record, plans, decides, and syncs its files 7 times. The seven syncs and the five new
  names take 1.1 ms of it in the kernel at best. Until its first call of the service a run takes
  2.4 to 2.7 ms of CPU at best on a quiet machine, and 0.1.0 took 2.4 to 3.0 ms in the same
  minutes; the rest writes and decides what was seen.
- An exact regression verdict misses its goal of 1 ms since it states Boschloo's p-value with a
  proven supremum over the common rate.
"""


def table(results: Results) -> str:
    """A text table, one line per benchmark."""
    lines = [f"  {'CPU time':<62}{'least':>9}{'median':>9}{'ratio':>10}  goal"]
    for group, timings in results:
        lines += ["", group.title]
        for timing in timings:
            line = f"  {timing.benchmark.name:<62}"
            least, median, ratio, *goal = _cells(timing)
            line += f"{least:>9}{median:>9}{ratio:>10}  {' '.join(goal)}"
            lines.append(
                line if timing.skipped is None else f"{line[:64]} skipped: {timing.skipped}"
            )
    return "\n".join([*lines, "", _summary(results)])


def page(results: Results, pairs: str = "") -> str:
    """The Markdown page.

    Args:
        results: What was measured.
        pairs: The section of what comparisons take in pairs, if it is to be shown.
    """
    parts = [_INTRODUCTION, f"{_surroundings()} {_summary(results)}\n"]
    for group, timings in results:
        parts.append(f"## {group.title}\n\n{group.note}\n")
        rows = [
            f"| `{timing.benchmark.name}` | {' | '.join(_cells(timing))} |"
            for timing in timings
            if timing.skipped is None
        ]
        if rows:
            rule = "|---|--:|--:|--:|---|---|"
            parts.append(
                "\n".join(["| benchmark | least | median | ratio | goal | |", rule, *rows, ""])
            )
        parts += [
            f"`{timing.benchmark.name}` was skipped: {timing.skipped}.\n"
            for timing in timings
            if timing.skipped is not None
        ]
    shown = [pairs] if pairs else []
    return "\n".join([*parts, *shown, _CHOOSING, _CONCURRENCY, _COMMENTARY, _losses(results)])


def _cells(timing: Timing) -> tuple[str, ...]:
    benchmark = timing.benchmark
    goal = ""
    if benchmark.ratio_goal is not None:
        goal = f"≤ {benchmark.ratio_goal:g} ×"
    elif benchmark.seconds_goal is not None:
        goal = f"≤ {_time(benchmark.seconds_goal)}"
    status = {True: "met", False: "missed", None: ""}[timing.met]
    ratio = "" if timing.ratio is None else f"{_figures(timing.ratio)} ×"
    return _time(timing.least), _time(timing.median), ratio, goal, status


def _summary(results: Results) -> str:
    judged = [t.met for _, timings in results for t in timings if t.met is not None]
    return f"{sum(judged)} of {len(judged)} goals met."


def _losses(results: Results) -> str:
    """Where a peer is faster and which goals are missed, so that no reader has to search."""
    lines = []
    for timing in (timing for _, timings in results for timing in timings):
        name = f"`{timing.benchmark.name}`"
        least, _, ratio, goal, _ = _cells(timing)
        if timing.met is False:
            lines.append(f"- {name} misses its goal: {ratio or least}, not {goal}.")
        elif timing.met is None and timing.ratio is not None and timing.ratio < 1:
            lines.append(f"- {name} takes {ratio} the CPU of `{timing.benchmark.reference}`.")
    return "\n".join(["## Where we lost in this run", "", *(lines or ["Nowhere."]), ""])


def _surroundings() -> str:
    cores = os.cpu_count() or 1
    text = f"{cores} core{'s' * (cores > 1)}: Python {platform.python_version()}"
    for peer in ("numpy", "scipy", "statsmodels"):
        try:
            text += f", {peer} {version(peer)}"
        except PackageNotFoundError:
            text += f", no {peer}"
    return f"Measured on a machine with {text}."


def _time(seconds: float) -> str:
    scale, unit = next(((s, u) for s, u in ((1, "s"), (1e-3, "ms")) if seconds >= s), (1e-6, "µs"))
    return f"{_figures(seconds / scale)} {unit}"


def _figures(value: float) -> str:
    """Three figures: more would be noise."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
