"""The scripted provider as an installed one: `install` makes a package that contains it."""

import sys
from pathlib import Path

import pytest
from msgspec import field

from sessionmgr.adapter import Options
from sessionmgr.testing.scripted_provider import scripted


class ActorOptions(Options, frozen=True, kw_only=True):
    """Options of this actor."""

    headers: dict[str, str] = field(default_factory=dict[str, str])
    """Headers for a server; one of them is usually secret."""


Actor = scripted("actor", options=ActorOptions)

FACTS = "Name: actor\nVersion: 1.0\n"
ENTRY = "[sessionmgr.adapters]\nactor = tests.cli.installed_actor:Actor\n"


def install(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `actor` a provider for this process, and for children with our `sys.path`."""
    facts = home / "site" / "actor-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text(FACTS)
    (facts / "entry_points.txt").write_text(ENTRY)
    monkeypatch.setattr(sys, "path", [str(facts.parent), *sys.path])
