"""Base class of every exception of this project."""

from __future__ import annotations


class SessionmgrError(Exception):
    """Whatever this library raises on purpose."""
