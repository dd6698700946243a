"""Providers that a child process finds by name."""

from sessionmgr.testing.scripted import scripted

Actor = scripted("actor")
