"""Planning: what a question costs before the first trial, as frozen tables."""
