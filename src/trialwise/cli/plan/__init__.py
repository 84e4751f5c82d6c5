"""`trialwise plan`, form by form."""
