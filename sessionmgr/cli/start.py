"""Entry point of the program: handles a Ctrl-C that arrives while modules are being imported."""

from __future__ import annotations


def start() -> int:
    """Run the command line of this process, and return its exit code."""
    try:
        from sessionmgr.cli.main import main
    except KeyboardInterrupt:
        return 130
    return main()
