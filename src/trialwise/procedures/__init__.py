"""Decisions: contracts to plans, plans with their trials to verdicts; pure, no clock and no I/O.

A procedure is one object that plans, decides, forecasts and explains one kind of question:

    base             what a procedure is, and what it is given: Situation, Counts
    registry         procedures by name, built in or from other distributions
    compliance       is the required rate met? (`estimated_rates`: by a claim's estimator)
    sequential       is the required rate met, or missed by the margin? may stop at any trial
                     (`sequential_designs`: its boundaries, alone and of criteria that share trials)
    regression       has the rate degraded from its baseline? (`regression_designs`: is it too
                     small, how many trials, and as soon as the counts decide)
    observational    was any failure observed? or only: what is the rate?
    mean_score       is the required mean score met?
    corpus           is the required rate met in this corpus, or in this run?
    explanations     the words of the full analysis (`explained_cutoffs`: of fixed designs)

    run_plan         a contract to a plan (`families`: which procedure plans a criterion, what a
                     judge changes, and decisions that are corrected together)
    run_verdict      a plan and its trials to a verdict, criterion by criterion
    trial_rows       what counting trials says, also of their independence
    partial_findings plans that were cut short, certain before their end, or only a quick check
    corrections      findings corrected for having been decided together
    judge_corrections  what a judge's measured errors leave of a conclusion
    composite        findings to one verdict, and decisions that later trials withdraw
    criterion_rows   trials as one criterion sees them, in columns and in the order of inputs
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
