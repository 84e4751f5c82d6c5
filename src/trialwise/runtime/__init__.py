"""The composition root: the only place where plans, services, stores and procedures meet.

Before the first trial:
    selecting            which contracts of suites somebody means, and how they are to be run
    preparing            plans a contract, with the baseline and the earlier run that it needs
    chosen_baselines     finds the baseline that a run is compared with, and the one shown beside it
    earlier_runs         which earlier run serves again: one policy for all ways to run
    guardrail_contract   a contract about a guardrail

A run:
    running              `run` and `run_all`, side by side, with replies recorded or replayed
    measuring            `measure`: writes a baseline
    comparing            `compare`: several services in turn, whatever is asked of them
    arm_plans            plans the arms of `compare`, or finds those to resume
    arms                 opens and watches the arms, asks the judge of their replies, concludes
                         and keeps their answer
    outcome_scoring      `score`: decides outcomes that other tools produced
    reply_scoring        `score_run`: decides replies and sessions that are kept
    workspace            where runs are kept, who hears of them, from outcomes to records
    looping              async work from plain code, and Ctrl-C

Afterwards:
    result               what `run` returns
    answers              what `compare` returns, concluded from the arms' runs and loaded again
    chosen_runs          which stored runs somebody means, and whether they still hold
    verifying            decides a stored run again and compares
    frames               tables for pandas and polars

Without a run:
    trial_sizing         `plan`: how many trials do I need?
"""
