"""Costs of many sessions at once, each of which sends a piece of text now and then."""
