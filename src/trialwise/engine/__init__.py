"""The engine: runs the trials of a plan, and owns the ports to a service, a log and a clock.

What a run knows, without I/O:
    run_state            which trial comes next, what is in flight, when the run is over
    arms_state           the same for the arms of a comparison, round by round
    experiment_state     the same for the trials of one list of inputs
    criterion_progress   how one criterion stands, and which trials it will probably not need; which
                         input and which seed each trial gets: functions of the plan alone; which
                         inputs a criterion that must never fail has still to be tried on
    spending_meter       what trials and the run take, and the budget that ends the run

What happens to one trial:
    attempt              the call: time limit, retries
    error_classes        the class of an error; whether this process stood still meanwhile
    trial_runner         one trial, and the function that is called before each
    reply_checking       from a reply to a trial: what every criterion says of it
    check_watch          one postcondition and one reply; a broken check, and where it raised; the
                         score that several graders give to one reply
    excerpts             what of a reply is kept, without secrets; inputs and tracebacks are kept
                         once, before a trial names them

Around it:
    drivers              run what the state hands out: on an event loop, or with an executor
    run_parts            the parts of a run: every trial is durable before it counts, and then
                         listeners hear of it
    ports                what the engine asks of services, logs, clocks and interrupts, and what
                         listeners hear; several calls at once, and who cancelled one
"""
