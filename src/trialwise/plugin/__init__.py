"""The pytest plugin: a marked test is run many times and decided. Only this package knows pytest.

Collected:
    settings          command line and ini file
    marker            `@pytest.mark.trials(...)` to criteria and options
    admission         a marked test with its identity and plan; what earlier sessions left of it

Run:
    hooks             what pytest calls; the session's own state
    marked_test       its call: trials, verdict, and what pytest makes of that
    pytest_driver     drives the engine's run state from pytest's main thread
    trial_items       one trial as a pytest item of its own
    one_by_one        a trial in the main thread, through every hook of pytest
    side_by_side      several trials at once, each with fixtures of its own; `bodies` run
    worker_run        the trials of a test with an executor; its bodies run in workers
    body_trials       makes a trial of what was seen of a body
    run_folder        the folder of a test's run
    trial_fixture     the `trial` fixture
    session_budget    limits of the whole session, shared by its workers
    other_plugins     what other plugins and Ctrl-C mean for a test that is run many times
    workbench         the `trialwise` fixture

Shown:
    reasons           how bodies ended and why trials failed, with one traceback each
    reporting         what pytest shows of a verdict
    summary           what stands at the end of the session, or before it

The entry point is `_trialwise_pytest`, outside the package: nothing here is imported before the
first marked test is collected.
"""
