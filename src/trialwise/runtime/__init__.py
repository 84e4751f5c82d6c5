"""The composition root: the only place where plans, services, stores and procedures meet.

Before the first trial:
    preparing            plans a contract, with the baseline and the earlier run that it needs
    baseline_choice      which baseline a run is compared with
    resuming             which earlier run serves again: one policy for all ways to run
    service_placement    the service, and where a plain function runs
    recording            runs whose replies are recorded or replayed
    settings             the keyword arguments of a run
    guardrail_contract   a contract about a guardrail

A run:
    running              `run` and `run_all`
    measuring            `measure`: writes a baseline
    comparing            `compare`: two services in turn, with `interleaving`
    outcome_scoring      `score`: decides outcomes that other tools produced
    workspace            where runs are kept and who hears of them
    looping              async work from plain code, and Ctrl-C
    deciding             from the outcome of a run to its record

Afterwards:
    result               what `run` returns
    verifying            decides a stored run again and compares
    frames               tables for pandas and polars

Without a run:
    trial_sizing         `plan`: how many trials do I need?
    expected_expense     what a trial took in the newest stored run
"""
