"""The engine: runs the trials of a plan, and owns the ports to a service, a log and a clock.

What a run knows, without I/O:
    run_state            which trial comes next, what is in flight, when the run is over
    arms_state           the same for the arms of a comparison, round by round
    experiment_state     the same for the trials of one list of inputs
    criterion_progress   how one criterion stands, and which trials it will probably not need
    unasked_inputs       which inputs a criterion that must never fail has still to be tried on
    trial_inputs         which input and which seed each trial gets: functions of the plan alone
    spending_meter       what trials and the run take, and the budget that ends the run

What happens to one trial:
    attempt              the call: time limit, retries, the class of an error
    trial_hooks          the function that is called before each trial
    reply_checking       from a reply to a trial: what every criterion says of it
    check_appraisal      one postcondition and one reply
    grading              the score that several graders give to one reply
    excerpts             what of a reply is kept, without secrets
    user_tracebacks      where the service raised, without the frames of trialwise
    async_calls          several calls at once, and who cancelled one
    stalls               whether this process stood still while a time limit passed

Around it:
    drivers              run what the state hands out: on an event loop, or with an executor
    ledger               every trial is durable before it counts
    text_keeper          inputs and tracebacks are kept once, before a trial names them
    ports                what the engine asks of services, logs, clocks and interrupts
    run_events           what listeners hear
"""
