"""Contexts of runs that are not started, for decisions before the start."""

from __future__ import annotations

import trio
import trio.lowlevel

from sessionmgr.adapter import RunContext, RunSpec
from sessionmgr.manager import Clocks
from sessionmgr.manager.run_plan import RunPlan, RunRequest
from sessionmgr.manager.session_state import SessionState
from sessionmgr.manager.supervised_run import SupervisedRun
from sessionmgr.manager.timeouts import TimeoutScheduler
from sessionmgr.model import (
    Json,
    Negotiation,
    Permission,
    PermissionMode,
    Session,
)
from sessionmgr.model.permission import Fidelity
from sessionmgr_adapters.claude import ClaudeOptions
from sessionmgr_adapters.claude.launch import ClaudeSpec, make_claude_spec
from tests.adapter.no_launcher import NoLauncher


async def add(given: dict[str, Json]) -> Json:
    await trio.lowlevel.checkpoint()
    return [*given]


def context(**fields: object) -> RunContext:
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
    spec = RunSpec(**{**known, **fields})  # type: ignore[arg-type]
    session = Session(id="ses", provider="claude", cwd="/")
    run = SupervisedRun(
        RunPlan(
            spec=spec,
            clocks=Clocks(close=1.0),
            negotiation=Negotiation(),
            wish=RunRequest(prompt="hi"),
            secrets=(),
            asked={},
        ),
        live=SessionState(session, stored=False, last_seq=0),
        timeouts=TimeoutScheduler(),
        run_id="run",
        message_id="msg",
    )
    return RunContext(run, spec, NoLauncher())


def spec(options: ClaudeOptions | None = None, **fields: object) -> ClaudeSpec:
    return make_claude_spec(context(**fields), options or ClaudeOptions(), "new-session")


def flags(made: ClaudeSpec) -> set[str]:
    return set(made.argv({flag: f"/files{flag}" for flag, _ in made.files})[1:])
