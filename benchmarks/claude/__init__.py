"""Costs of the adapter of Claude Code, against its program driven raw and another SDK."""
