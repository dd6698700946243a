"""Kimi's permissions in each mode, by effects on disk and network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Final

import trio

from sessionmgr.adapter import Approve
from sessionmgr.model import FailureKind
from sessionmgr.testing.model_server import ModelSay, ModelServer
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from sessionmgr_adapters.kimi.wire_adapter import PERMISSIONS
from tests.real.effect_probes import (
    ALL,
    INSIDE,
    READ,
    EffectProbes,
    ProbeDirectories,
    open_canaries,
)
from tests.real.harness import RealAgentHarness, allow
from tests.real.kimi.harness import kimi_environment

GUARDED: Final = (".envrc",)
FREE: Final = ALL.union(GUARDED)
# The effects in each mode: without an approver, and with one that allows everything.
UNASKED: Final[dict[str, set[str]]] = {
    "default": {READ},
    "accept_edits": {READ, INSIDE},
    "plan": {READ},
    "full_auto": FREE,
    "dangerously_skip_permissions": FREE,
}
ALLOWED: Final[dict[str, set[str]]] = {
    "default": FREE,
    "accept_edits": FREE,
    "plan": {READ},
}
SHELLS: Final = 2
"""The commands that the probes try: in plan mode Kimi refuses all other effects itself."""
CHANGES: Final = ("plan", "dangerously_skip_permissions", "plan", "full_auto", "default")


async def check_all(
    canaries: EffectProbes, wanted: Mapping[str, set[str]], approve: Approve | None = None
) -> None:
    """Try everything in these modes."""
    for mode, effects in wanted.items():
        denied = SHELLS if mode == "plan" else None
        await canaries.check(mode, effects, approve, denied=denied)


async def test_only_that_is_done_which_the_mode_allows(house: RealAgentHarness) -> None:
    async with (
        open_canaries(house, PERMISSIONS, GUARDED) as canaries,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(check_all, canaries, UNASKED)
        nursery.start_soon(partial(check_all, canaries, ALLOWED, allow))


async def test_the_mode_of_one_run_is_not_that_of_the_next(house: RealAgentHarness) -> None:
    async with open_canaries(house, PERMISSIONS, GUARDED) as canaries:
        cage = ProbeDirectories(house.place(), GUARDED)
        session = await house.session(cwd=cage.work)
        for number, mode in enumerate(CHANGES):
            done, _ = await canaries.try_all(cage, session, f"turn{number}", mode)
            assert done == UNASKED[mode], f"{mode}, turn {number}"


async def test_a_setting_that_allows_everything_refuses_the_narrower_modes(
    house: RealAgentHarness, hermitage: IsolatedEnvironment, server: ModelServer
) -> None:
    session = await house.session()
    await house.play([[ModelSay(text="one")]], session, options=house.options(keep=False))
    [state] = (hermitage.root / "kimi" / "sessions").rglob("state.json")
    kept = json.loads(state.read_text())
    for approval in ({"yolo": True}, {"afk": True}, {"auto_approve_actions": ["edit file"]}):
        state.write_text(json.dumps({**kept, "approval": {**kept["approval"], **approval}}))
        await is_refused(house, "accept_edits", next(iter(approval)), session.id)
    kimi_environment(hermitage, more="default_yolo = true\n")
    for mode in ("default", "accept_edits", "plan"):
        await is_refused(house, mode, "default_yolo is true")
    await house.goes_on(await house.session("full_auto"))
    assert len(server.log.asked) == 2


async def is_refused(
    house: RealAgentHarness, mode: str, reason: str, session_id: str | None = None
) -> None:
    session = await (house.manager.session(session_id) if session_id else house.session(mode))
    played = await house.play([[ModelSay(text="no")]], session)
    assert played.result.failure is not None
    assert played.result.failure.kind is FailureKind.PERMISSION_REFUSED
    assert reason in played.result.failure.message
