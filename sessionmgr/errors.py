"""Base class of every exception of this project."""

from __future__ import annotations


class SessionmgrError(Exception):
    """Base class of all exceptions that this library raises deliberately."""
