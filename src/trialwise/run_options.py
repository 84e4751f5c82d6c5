"""The options of a run in plain values: `--help` shows them and loads no more.

Written by `make stubs` from the fields of `RunOptions`.
"""

# fmt: off
#: The name of each option, the field that it sets, its kind and what it means.
OPTIONS: tuple[tuple[str, str, str, str], ...] = (
    ("trials", "trials", "count", "A fixed number of trials for every criterion, or one for each sampling."),
    ("max-trials", "max_trials", "count", "Upper limit on trials where no number is fixed."),
    ("intent", "intent", "verification|smoke", "`verification` refuses weak designs; `smoke` is a quick check."),
    ("rule", "rule", "exact|wilson|fisher", "The rule set for every decision."),
    ("analysis", "analysis", "measured|intent-to-treat|per-protocol", "Which trials decide: `measured` asks again what never reached the service, `intent-to-treat` counts it as failed, `per-protocol` also leaves out empty runs."),
    ("seed", "seed", "integer", "Seed for the order of inputs and for each trial."),
    ("draw", "draw", "balanced|independent", "How inputs are drawn."),
    ("concurrency", "concurrency", "count", "Number of concurrent trials."),
    ("executor", "executor", "text", "Where trials run: `local`, `processes` for services that keep a processor busy, `dask` or `ray`; an address follows a colon, such as `dask:tcp://scheduler:8786`."),
    ("rate", "rate_per_s", "pace", "Upper limit on trials started per unit of time."),
    ("timeout", "timeout_s", "time", "Time limit for one attempt."),
    ("retries", "retries", "count from 0", "Number of further attempts after an infrastructure error. The verdict reports them."),
    ("cost-per-trial", "cost_per_trial_usd", "money", "What a trial costs where the service does not tell. A budget reserves it for each trial in flight."),
    ("override", "overrides", "names", "Codes of major caveats to accept under verification."),
    ("smoke-refuses", "smoke_refuses", "nothing|hard|major", "What refuses a smoke run, too, instead of a warning: `hard` invalidators of a comparison, or also `major` caveats."),
    ("baseline", "baseline", "text", "The identifier of the baseline to compare with."),
    ("horizon", "horizon", "count", "Number of recurring runs over which wrong verdicts are bounded (§8.5), or `gates` or `days`."),
    ("correction", "correction", "none|bonferroni|holm|bh|by|e-bh", "How decisions that belong together are corrected for their number."),
    ("family", "family", "text", "Name of the decisions that are corrected together; contracts may share it."),
    ("family-size", "family_size", "count", "Number of decisions in the family, where more belong to it than are run here."),
    ("inconclusive", "inconclusive", "undecided|fail", "What the exit code says of a run that is INCONCLUSIVE: 3 (`undecided`) or 1 (`fail`). The verdict stays."),
    ("max-seconds", "budget.seconds", "time", "Maximum time. Every result is kept."),
    ("max-usd", "budget.usd", "money", "Maximum cost. Every result is kept."),
    ("confidence", "confidence", "rate", "1 − the largest probability of a wrong PASS, and of a wrong FAIL."),
)
