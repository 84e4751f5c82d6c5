"""From a plan and its trials to a verdict: pure, so that anybody can decide a record again."""
