"""Costs of the adapter of Codex, against its app-server driven raw and another SDK."""
