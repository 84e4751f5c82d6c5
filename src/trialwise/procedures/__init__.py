"""The decisions: counts and designs in, findings and verdicts out, nothing else touched."""
