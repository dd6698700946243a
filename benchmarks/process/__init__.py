"""Costs of owning a process tree, against starting the process alone."""
