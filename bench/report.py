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

`python -m bench --full --markdown docs/benchmarks.md` writes this page. `make bench` prints the
table from a shorter look; `--quick` only proves that everything runs.

Times are CPU time unless a table says otherwise, on a machine that does other work too. **Trust the
ratios**: a benchmark and its reference take turns. All figures are of the least time of all rounds,
which is the work with the least disturbance.
"""

_CHOOSING = """\
## Trials of a choice between arms

`python -m bench.choosing` simulates `choose` with a smallest difference of 10 points. Trials of all
arms together; a wrong answer comes in at most 5 % of runs. Equal numbers are the smallest design
that tries all arms equally often and names the highest rate in 95 % of runs, computed exactly. The
method of Bechhofer, Kiefer and Sobel has to know the odds.

- 90 % and 80 %: equal numbers 136, `choose` 166 ± 5, `--break-ties` 84 ± 1; theirs 74. We lose to
  it here.
- 90 % and four at 80 %: 590, 409 ± 8 and 305 ± 4; theirs 321 with elimination.
- 90 % and nine at 80 %: 1,480, 823 ± 21 and 691 ± 14; theirs 707.
- Five at 80 %: `choose` says "tied" in 76 % of runs, after 933 ± 20 trials; `--break-ties` names
  one after 564 ± 12; theirs after 531.
"""

_CONCURRENCY = """\
## What concurrency costs in trials

`python -m bench.concurrency` simulates lognormal latencies (sigma 1) and a required rate of 90 %,
400 runs a line. Results count in the order of inputs, so a decision may wait for a slow trial. The
table has the trials that the decision rests on, and those that were started beyond them.

| true rate | in flight | needed | started beyond | at most |
|--:|--:|--:|--:|--:|
| 100 % | 20 | 40 | 0.6 | 1 |
| 100 % | 50 | 40 | 27.0 | 28 |
| 97 % | 20 | 87 | 3.5 | 15 |
| 97 % | 50 | 88 | 25.6 | 95 |
| 80 % | 20 | 75 | 15.5 | 90 |
| 80 % | 50 | 72 | 27.5 | 160 |
"""

_COMMENTARY = """\
## What to read out of it, and what not

- The statistics are plain Python, so that a check in a hook or in CI does not wait for an array
  library. That start is by far the largest difference on this page.
- The losing side: compiled kernels (`bdtrc`, `betaincinv`) beat our loop. The lines for scipy's
  `proportion_ci` leave out the `binomtest` that a caller must run first.
- A regression verdict computes the exact false alarm with the baseline's own sampling error, and
  Boschloo's p-value with a proven supremum. It misses its goal of 1 ms, and a larger baseline takes
  longer.
- A run's own cost matters only where the service costs nothing: at 50 ms a trial it is a thousandth
  of the time. In the same minutes, a trial through a suite file took 14 to 23 µs, and with version
  0.1.0 42 to 238 µs.
- `python -m bench.memory`: a run of 10,000 trials takes 41 MB, of 1,000,000 trials 132 MB (the goal
  is 150), `--resume` of it 133 MB, `show --verify` 119 MB and its HTML report 138 MB.
- `check` of 10,000 inputs in the suite file itself takes 1.5 s of CPU, most of it in the YAML
  parser; a JSONL or CSV file is faster.
"""


#: Under the heads of a table: numbers stand right.
_RULE = "|---|--:|--:|---|"


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
            f"| `{timing.benchmark.name}` | {' | '.join(_shown_cells(timing))} |"
            for timing in timings
            if timing.skipped is None
        ]
        if rows:
            parts.append("\n".join(["| benchmark | least | ratio | goal |", _RULE, *rows, ""]))
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


def _shown_cells(timing: Timing) -> tuple[str, ...]:
    """The cells of the page: without the median, which a loaded machine moves most."""
    least, _, ratio, goal, status = _cells(timing)
    return least, ratio, f"{goal}, {status}" if goal else ""


def _summary(results: Results) -> str:
    judged = [t.met for _, timings in results for t in timings if t.met is not None]
    return f"{sum(judged)} of {len(judged)} goals met."


def _losses(results: Results) -> str:
    """Where a peer is faster, so that no reader has to search; a missed goal says so in its row."""
    timings = [timing for _, found in results for timing in found]
    slower = [
        f"`{one.benchmark.name}` ({_figures(one.ratio)} ×)"
        for one in timings
        if one.met is None and one.ratio is not None and one.ratio < 1
    ]
    lines = [f"- Faster than ours: {', '.join(slower)}."] if slower else []
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
