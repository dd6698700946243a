"""Costs of sessions: per event on its whole path, per run, and per idle session."""
