"""How the adapter of Codex measures up: against its app-server, driven raw, and another SDK."""
