"""The composition root: where contracts, engine, stores and reporters meet."""
