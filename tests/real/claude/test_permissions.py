"""Canaries: what each mode lets a real Claude Code do is what the adapter says that it does."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from sessionmgr.model import PermissionMode, RunStatus
from sessionmgr.provider import Allow, ApprovalRequest, Decision
from sessionmgr.testing.model_server import Call, Say, Script
from sessionmgr_adapters.claude.adapter import PERMISSIONS
from tests.real.claude.house import House

DEEDS = ("read", "write_inside", "write_outside", "command", "network")

# What is done unasked. The rest is asked; and then it is done, if that is allowed.
UNASKED = {
    "default": {"read"},
    "accept_edits": {"read", "write_inside"},
    "plan": {"read"},
    "full_auto": set(DEEDS),
    "dangerously_skip_permissions": set(DEEDS),
}


class Canaries:
    """Things that are done or not, and where that shows."""

    def __init__(self, house: House, name: str) -> None:
        self.inside = house.work / f"{name}-inside"
        self.outside = house.work.parent / f"{name}-outside"
        self.touched = house.work / f"{name}-touched"
        self.read = house.work / "to-read"
        self.read.write_text("the canary sings")
        self.server = house.server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]

    @property
    def script(self) -> Script:
        shell = f"exec 3<>/dev/tcp/127.0.0.1/{self.port}"
        return [
            [Call(tool="read", input={"path": str(self.read)})],
            [Call(tool="write", input={"path": str(self.inside), "content": "x"})],
            [Call(tool="write", input={"path": str(self.outside), "content": "x"})],
            [Call(tool="shell", input={"command": f"touch {self.touched.name}"})],
            [Call(tool="shell", input={"command": f"bash -c '{shell}'"})],
            [Say(text="done")],
        ]

    def done(self) -> set[str]:
        """What was really done."""
        found = {
            "read": any(
                "the canary sings" in each.text
                for asked in self.server.log.asked
                for each in asked.results
            ),
            "write_inside": self.inside.exists(),
            "write_outside": self.outside.exists(),
            "command": self.touched.exists(),
            "network": self._was_called(),
        }
        return {name for name, was_done in found.items() if was_done}

    def _was_called(self) -> bool:
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return False
        connection.close()
        return True

    def close(self) -> None:
        self._listener.close()


async def sing(house: House, mode: str, *, resumed: bool, allow: bool) -> tuple[set[str], set[str]]:
    """Have all deeds tried; return what was done, and for what somebody was asked."""
    session = await house.session(mode)
    options = house.options(keep=False)
    if resumed:
        before = await house.play([[Say(text="first")]], session, options=options)
        assert before.result.status is RunStatus.COMPLETED, before.result.failure
    asked: set[str] = set()

    async def approve(request: ApprovalRequest) -> Decision:
        asked.add(request.tool_name)
        return Allow()

    canaries = Canaries(house, f"{mode}-{resumed}-{allow}")
    try:
        played = await house.play(
            canaries.script, session, approve=approve if allow else None, options=options
        )
        assert played.result.status is RunStatus.COMPLETED, played.result.failure
        assert played.result.permission is not None
        mapped = PERMISSIONS.modes[PermissionMode(mode)]
        assert played.result.permission.effective == mapped.effective
        return canaries.done(), asked
    finally:
        canaries.close()


@pytest.mark.parametrize("resumed", [False, True], ids=["fresh", "resumed"])
@pytest.mark.parametrize("mode", [each.value for each in PermissionMode])
async def test_with_nobody_to_ask_only_that_is_done_which_the_mode_lets_through(
    any_house: House, mode: str, resumed: bool
) -> None:
    done, _ = await sing(any_house, mode, resumed=resumed, allow=False)
    assert done == UNASKED[mode]


@pytest.mark.parametrize("mode", [each.value for each in PermissionMode])
async def test_who_is_asked_and_allows_it_gets_it_done_but_not_while_it_only_plans(
    house: House, mode: str
) -> None:
    done, asked = await sing(house, mode, resumed=False, allow=True)
    if mode == "plan":
        assert (done, asked) == ({"read"}, set())
    else:
        assert done == set(DEEDS)
        assert bool(asked) == (mode in {"default", "accept_edits"})
        assert ("Write" in asked) == (mode in {"default", "accept_edits"})  # the one outside


async def test_a_mode_is_changed_between_runs_and_never_wider_than_asked(house: House) -> None:
    session = await house.session("default")
    script: Script = [[Call(tool="shell", input={"command": "touch x"})], [Say(text="done")]]
    for mode, is_done in (
        ("default", False),
        ("full_auto", True),
        ("default", False),
        ("plan", False),
        ("dangerously_skip_permissions", True),
        ("plan", False),
    ):
        played = await house.play(script, session, permission_mode=mode)
        assert played.result.status is RunStatus.COMPLETED, played.result.failure
        assert Path(house.work, "x").exists() == is_done, mode
        Path(house.work, "x").unlink(missing_ok=True)


def offered(house: House) -> set[str]:
    names = {each.name for each in house.server.log.asked[-1].tools}
    return names - {"DeferredToolPlaceholder"}


async def test_tools_that_are_denied_are_not_there_and_rules_are_kept(house: House) -> None:
    script: Script = [
        [Call(tool="Bash", input={"command": "touch x", "description": "d"})],
        [Say(text="done")],
    ]
    played = await house.play(
        script, await house.session("full_auto"), tools_denied=["Bash(touch *)", "WebFetch"]
    )
    assert not Path(house.work, "x").exists()
    assert played.result.permission_denials
    assert "Bash" in offered(house)
    assert not offered(house) & {"WebFetch", "CronCreate", "AskUserQuestion", "ScheduleWakeup"}


async def test_only_the_tools_that_are_allowed_are_there(house: House) -> None:
    played = await house.play([[Say(text="done")]], tools_allowed=["Read", "Bash"])
    assert played.result.status is RunStatus.COMPLETED, played.result.failure
    assert offered(house) == {"Read", "Bash"}
    await house.play([[Say(text="done")]], tools_allowed=[])
    assert offered(house) == set()


async def test_an_edit_through_a_link_is_an_edit_where_it_leads(house: House) -> None:
    elsewhere = house.work.parent / "elsewhere"
    elsewhere.mkdir()
    Path(house.work, "link").symlink_to(elsewhere)
    path = str(house.work / "link" / "x")
    script: Script = [
        [Call(tool="write", input={"path": path, "content": "x"})],
        [Say(text="done")],
    ]
    played = await house.play(script, await house.session("accept_edits"))
    assert not (elsewhere / "x").exists()
    assert played.result.permission_denials
