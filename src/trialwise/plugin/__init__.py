"""The pytest plugin: one marker on a test makes it a judged one. The only place that knows pytest.

Collected:
    settings     command line and ini file
    marker       `@pytest.mark.trials(...)` to criteria and options
    identity     what makes a test the same test, for its baselines
    cases        a marked test with its plan; what earlier sessions left of it

Run:
    hooks        what pytest calls; the session's own state
    protocol     a marked test as pytest sees it: setup, call, teardown
    judged       its call: trials, verdict, and what pytest makes of that
    running      the trials from the plan to the record, by the engine's rules
    items        one trial as a pytest item of its own
    execution    a trial in the main thread, through every hook of pytest
    sidebyside   several trials at once, with `ownership` of fixtures and `bodies` to run
    trial        the `trial` fixture
    endings      how a body ended: passed, failed, error by class
    interrupts   Ctrl-C
    budget       limits of the whole session, shared by its workers
    neighbours   other plugins, and what they mean for a test that is run many times
    measuring    baselines
    workbench    the `trialwise` fixture

Shown:
    reasons      why trials failed, with one traceback each
    reporting    what pytest shows of a verdict
    summary      what stands at the end of the session, or before it

The entry point is `_trialwise_pytest`, outside the package: nothing here is imported before the
first marked test is collected.
"""
