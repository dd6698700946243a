"""How the adapter of Claude Code measures up: against its program, driven raw, and another SDK."""
