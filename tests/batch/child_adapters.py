"""Providers that a child process finds by name."""

from sessionmgr.testing.scripted_provider import scripted

Actor = scripted("actor")
