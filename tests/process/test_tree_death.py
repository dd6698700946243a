"""Whoever of owner, warden and guards is killed: the trees end (invariant I10)."""

from pathlib import Path

import pytest

from tests.process.stage import (
    USERS,
    carriers,
    crew,
    is_alive,
    kill,
    left,
    owner,
    until_empty,
)

FAMILY = "plain,own_session,own_group,daemon,bare_environment,deep,namespaced,deaf"
NOTES = 18
"""How many processes of a family note themselves."""


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize(
    "killed", ["owner", "guards", "owner+warden", "owner+guards", "warden+guards"]
)
async def test_any_but_all_three_killed_leave_nothing(
    tmp_path: Path, user: str, killed: str
) -> None:
    async with owner(tmp_path, user, FAMILY, "forking_sessions", "brood") as run:
        await run.until_noted(NOTES)
        assert len(carriers(run.launcher)) > NOTES
        who = {"owner": [run.pid], "warden": [run.warden], "guards": run.guards}
        kill(*(pid for each in killed.split("+") for pid in who[each]))
        print(await until_empty(run.launcher, run.notes))
