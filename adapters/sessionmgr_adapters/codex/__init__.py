"""Codex: its command line program, driven by the lines that it reads and writes."""
