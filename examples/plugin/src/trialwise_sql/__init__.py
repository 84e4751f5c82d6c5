"""SQL for trialwise: a check, a service, a format of reports and an importer."""
