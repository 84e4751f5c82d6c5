"""Drivers run the trials that a `RunState` hands out: the port for new ways to execute a run.

    run_drivers     on an event loop, with any `Service` (`trialwise run`, `tw.run`), also the arms
                    of a comparison in turn (`tw.compare`), or in the caller's thread, with an
                    `Executor` (the pytest plugin)

A driver decides how and where a trial runs, and nothing else. Its duties:

- It asks `RunState.next()` for trials and starts each one that it is given, until that gives None
  with nothing in flight.
- It hands every completed trial to `Ledger.count`, which makes it durable and then counts it. The
  order of completion does not matter: streams count in the order of inputs.
- It waits for what is in flight, or cancels it where `RunState.lets_go`, and reports what will
  never complete with `RunState.abandon` or `RunState.let_go`.
- It ends the run with `RunState.stop` where the service, the log or a person ends it.

To run trials in processes, with Dask or with Ray, write an `Executor`: `drive` does the rest. The
verifier replays a stored run through `RunState` without any driver.
"""
