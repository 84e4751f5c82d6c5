"""The engine and the ports it owns: what it asks of a service, a store and a clock."""
