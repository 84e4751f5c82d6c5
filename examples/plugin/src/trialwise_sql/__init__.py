"""SQL for trialwise: a check, a service and a format of reports."""
