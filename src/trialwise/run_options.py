"""The options of a run in plain values: `--help` shows them and loads no more.

Written by `make stubs` from the fields of `RunOptions`.
"""

# fmt: off
#: The name of each option, the field that it sets, its kind and what it means.
OPTIONS: tuple[tuple[str, str, str, str], ...] = (
    ("trials", "trials", "count", "A fixed number of trials for every criterion, or one for each sampling."),
    ("max-trials", "max_trials", "count", "Upper limit on trials for criteria that may stop early."),
    ("intent", "intent", "verification|smoke", "Whether the run is evidence, or a cheap smoke test."),
    ("rule", "rule", "wilson|exact", "The rule set that every criterion is decided by."),
    ("analysis", "analysis", "intent-to-treat|per-protocol", "Which trials decide."),
    ("seed", "seed", "integer", "The seed of the order of inputs and of every trial."),
    ("draw", "draw", "balanced|independent", "How inputs are chosen."),
    ("concurrency", "concurrency", "count", "How many trials run at a time."),
    ("rate", "rate_per_s", "pace", "The most trials that start in a unit of time."),
    ("timeout", "timeout_s", "time", "The longest time of one attempt."),
    ("retries", "retries", "count from 0", "Further attempts after an infrastructure error; the verdict discloses them."),
    ("override", "overrides", "names", "Major caveats that are admitted under verification, by code."),
    ("baseline", "baseline", "text", "The identifier of the baseline to compare with."),
    ("horizon", "horizon", "count", "Runs of a recurring monitor within which false alarms are bounded (§8.5)."),
    ("max-seconds", "budget.seconds", "time", "The longest time; every result is kept."),
    ("max-usd", "budget.usd", "money", "The most money; every result is kept."),
    ("confidence", "confidence", "rate", "1 − the chance of a wrong PASS with fixed trials; of a wrong FAIL against a baseline or decided early."),
)
