"""Runs that were never started, for what is decided before one is."""

from __future__ import annotations

import trio
import trio.lowlevel

from sessionmgr.adapter import RunContext, RunSpec
from sessionmgr.adapter.inbox import Inbox
from sessionmgr.adapter.run_control import RunControl
from sessionmgr.model import (
    Json,
    Permission,
    PermissionMode,
)
from sessionmgr.model.permission import Fidelity
from sessionmgr_adapters.claude import ClaudeOptions
from sessionmgr_adapters.claude.launch import ClaudeSpec, make_spec
from tests.adapter.no_launcher import NoLauncher


async def add(given: dict[str, Json]) -> Json:
    await trio.lowlevel.checkpoint()
    return [*given]


def context(**fields: object) -> RunContext:
    control = RunControl(
        run_id="run", session_id="ses", provider="claude", intake=Inbox[object](), grace=1.0
    )
    permission = Permission(
        asked=PermissionMode.DEFAULT, effective="default", fidelity=Fidelity.EXACT
    )
    known: dict[str, object] = {
        "prompt": "hi",
        "cwd": "/",
        "env": {"A": "b"},
        "permission": permission,
        "options": ClaudeOptions(),
    }
    return RunContext(control, RunSpec(**{**known, **fields}), NoLauncher())  # type: ignore[arg-type]


def spec(options: ClaudeOptions | None = None, **fields: object) -> ClaudeSpec:
    return make_spec(context(**fields), options or ClaudeOptions(), "new-session")


def flags(made: ClaudeSpec) -> set[str]:
    return set(made.argv({flag: f"/files{flag}" for flag, _ in made.files})[1:])
