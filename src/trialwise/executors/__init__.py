"""Where trials run when one process is not enough: worker processes, Dask, Ray, or your own.

| module         | what it holds                                                        |
|----------------|----------------------------------------------------------------------|
| `jobs`         | how plan, checks and service reach a worker, and what comes back     |
| `trial_worker` | runs a batch of trials inside a worker                               |
| `pool_driver`  | drives a run, and the port that every executor fulfils               |
| `process_pool` | workers on this machine                                              |

The workers of Dask and Ray clusters are in `trialwise.contrib.executors`.

Decisions are made in the driver alone: seeds follow from the index of a trial, and trials count in
the order of inputs, so the same seed gives the same verdict on every executor.
"""
