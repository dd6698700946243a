"""How batches measure up: against xargs, and by themselves."""
