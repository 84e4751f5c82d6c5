"""SQL for trialwise: one extension of each kind."""
