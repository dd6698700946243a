"""Where the command begins: what a Ctrl-C leaves while the rest is still being imported."""

from __future__ import annotations


def start() -> int:
    """Run the command line of this process, and return its exit code."""
    try:
        from sessionmgr.cli.main import main
    except KeyboardInterrupt:
        return 130
    return main()
