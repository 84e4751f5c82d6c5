"""Decisions: contracts to plans, plans with their trials to verdicts; pure, no clock and no I/O.

A procedure is one object that plans, decides, forecasts and explains one kind of question:

    base             what a procedure is, and what it is given: Situation, Counts
    registry         procedures by name, built in or from other distributions
    compliance       is the required rate met? (`estimated_rates`: by a claim's estimator)
    sequential       is the required rate met, or missed by the margin? may stop at any trial
    smoke_runs       what a quick check PASSes on, and what it says of itself
    regression       has the rate degraded from its baseline? (`regression_limits`: is it too small?
                     `regression_sizes`: how many trials? `regression_stages`: as soon as the
                     counts decide)
    observational    was any failure observed?
    reported         what is the rate? decides nothing
    clauses          prohibitions, which no rate says, and what keeps them
    mean_score       is the required mean score met?
    corpus           is the required rate met in this corpus, or in this run?
    explaining       the words of the full analysis, procedure by procedure

    planning         a contract to a plan: `plan_run`
    deciding         a plan and its trials to a verdict: `decide_run`
    composite        findings to one verdict, with its error envelopes
    criterion_rows   trials as one criterion sees them, in columns
    streams          the outcomes of one criterion, decided in the order of inputs
    characteristic   how one rule decides at any true rate
    chances          the chances of contracts and suites, and a plan in counts
    claims           whether a design supports what a verdict claims

    latency          percentiles: limits, and the baseline's, planned and decided
    gates            limits on numbers of repeated runs (`metrics`: pass@k and pass^k)
    comparing        two runs, pair by pair
    selection        which baseline a run is compared with (`guardrails`: and whether it may be)
    sizing           how many trials a question needs

To add a procedure, write a module with a subclass of `base.Procedure`, name it in `registry` or in
the entry point group `trialwise.procedures`, and test it. tests/procedures/test_new_procedure.py
shows all of it. A criterion asks for it by `procedure`.
"""
