"""trialwise."""
