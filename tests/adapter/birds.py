"""An adapter with variants: `birds:heron`, `birds:stork`, and the ids in a file of agents."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from sessionmgr.adapter import (
    HARMLESS,
    AgentsFileInvalid,
    Health,
    Options,
    PermissionMap,
    VariantUnknown,
    derive_adapter,
)
from sessionmgr.model import NATIVE, Capabilities, PermissionMode
from sessionmgr.testing.scripted_provider import ScriptedProvider

BUNDLED = ("heron", "stork")
CAREFUL = PermissionMap({mode: HARMLESS.modes[mode] for mode in (PermissionMode.PLAN,)})


class BirdOptions(Options, frozen=True, kw_only=True):
    """Options of birds."""

    careful: bool = False
    """Whether the bird has the mode plan alone."""
    model: str | None = None
    """The model."""


class Birds(ScriptedProvider):
    """The adapter; each variant is a class derived from it."""

    name = "birds"
    display_name = "Birds"
    capabilities = Capabilities(streaming=NATIVE, resume=NATIVE, model_choice=NATIVE, cost=NATIVE)
    options = BirdOptions

    @classmethod
    def variants(cls, agents: Path | None) -> Sequence[str]:
        ids = _ids(agents)
        if "phoenix" in ids:
            raise KeyError("fire")
        return sorted({*BUNDLED, *ids})

    @classmethod
    def variant(cls, variant: str, agents: Path | None) -> type[ScriptedProvider]:
        id, _, version = variant.partition("@")
        if id == "crash":
            raise ZeroDivisionError
        if id == "cuckoo":
            return derive_adapter(cls, "heron")
        if id not in cls.variants(agents) or version not in {"", "1.0"}:
            known = cls.variants(agents)
            raise VariantUnknown(cls.name, variant, f"known: {', '.join(known)}", known=known)
        return derive_adapter(cls, variant, display_name=id.title(), log=[], played={})

    @classmethod
    def permission_map(cls, options: Options) -> PermissionMap:
        return CAREFUL if BirdOptions.of(options).careful else cls.permissions

    @classmethod
    def readiness(cls, options: Options, env: Mapping[str, str], cwd: str) -> Health:
        match cls.name:
            case "birds" | "birds:stork":
                return Health(state="skip", detail="not found; install it")
            case "birds:auk":
                return Health(state="fail", detail="it is not logged in; run: bird login")
            case "birds:ouzel":
                raise OSError("no nest")
            case _:
                return Health()


def _ids(agents: Path | None) -> list[str]:
    if agents is None:
        return []
    try:
        return cast("list[str]", json.loads(agents.read_bytes()))
    except (OSError, ValueError) as error:
        raise AgentsFileInvalid(str(agents), f"{type(error).__name__}; correct it") from None


def install_birds(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `birds` a provider for this process, and for children with our `sys.path`."""
    facts = home / "site" / "birds-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Name: birds\nVersion: 1.0\n")
    entry = "[sessionmgr.adapters]\nbirds = tests.adapter.birds:Birds\n"
    (facts / "entry_points.txt").write_text(entry)
    monkeypatch.setattr(sys, "path", [str(facts.parent), *sys.path])
