"""Costs of the store, against plain SQLite."""
