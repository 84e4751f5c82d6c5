"""The composition root: the only place where plans, services, stores and procedures meet.

Before the first trial:
    preparing            plans a contract, with the baseline and the earlier run that it needs
    chosen_baselines     finds the baseline that a run is compared with, and the one shown beside it
    arm_plans            plans the arms of a comparison, and the rules that end it
    earlier_runs         which earlier run serves again: one policy for all ways to run
    guardrail_contract   a contract about a guardrail

A run:
    running              `run` and `run_all`, also with replies recorded or replayed
    side_by_side         several contracts at a time, for `trialwise run --jobs`
    measuring            `measure`: writes a baseline
    comparing            `compare`: several services in turn, with `interleaving`
    choosing             `choose` and `explore`: the best of several arms, and their description
    open_comparison      keeps a comparison from its plans to its verdict, and resumes it
    comparison_watching  shows a comparison while it goes on
    outcome_scoring      `score`: decides outcomes that other tools produced
    workspace            where runs are kept, who hears of them, where a plain function runs
    looping              async work from plain code, and Ctrl-C
    deciding             from the outcome of a run to its record

Afterwards:
    result               what `run` returns
    comparison_result    what `compare` returns
    choice_result        what `choose` and `explore` return
    stored_comparisons   loads a comparison that is kept, and compares its runs again
    verifying            decides a stored run again and compares
    frames               tables for pandas and polars
    relabelling          a service compared with itself

Without a run:
    trial_sizing         `plan`: how many trials do I need?
"""
