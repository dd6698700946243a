"""The scripted provider as an installed one: `install` makes a package that brings it."""

import sys
from pathlib import Path

import pytest

from sessionmgr.testing.scripted import scripted

Actor = scripted("actor")

FACTS = "Name: actor\nVersion: 1.0\n"
ENTRY = "[sessionmgr.adapters]\nactor = tests.cli.actor:Actor\n"


def install(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `actor` a provider for this process, and for children with our `sys.path`."""
    facts = home / "site" / "actor-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text(FACTS)
    (facts / "entry_points.txt").write_text(ENTRY)
    monkeypatch.setattr(sys, "path", [str(facts.parent), *sys.path])
