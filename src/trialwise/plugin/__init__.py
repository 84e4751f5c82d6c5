"""The pytest plugin: a marked test is run many times and decided. Only this package knows pytest.

Collected:
    session           command line, ini file and `@pytest.mark.trials(...)`, to criteria and
                      options; limits of the session, shared by its workers
    admission         a marked test with its identity and plan; what earlier sessions left of it

Run:
    hooks             what pytest calls; the session's own state, and what it shows at its end
    marked_test       its call: verdict, and what pytest makes of that; the `trialwise` fixture
    marked_runs       the trials of a test: here, or in workers that call its body
    trial_items       one trial as a pytest item of its own; trials one by one, through every hook
    side_by_side      several trials at once, each with fixtures of its own
    trial_fixture     the `trial` fixture, and the trial that is made of what a body did
    other_plugins     what other plugins and Ctrl-C mean for a test that is run many times

Shown:
    reasons           how bodies ended and why trials failed, with one traceback each
    reporting         what pytest shows of a verdict

The entry point is `_trialwise_pytest`, outside the package: nothing here is imported before the
first marked test is collected.
"""
