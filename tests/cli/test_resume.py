"""A run that was paused or interrupted continues in another process."""

import json
from pathlib import Path

import pytest

from sessionmgr.testing.scripted_provider import Fail, Hang, Say
from tests.cli.command_terminal import CommandTerminal
from tests.cli.installed_actor import install
from tests.cli.stored_runs import RunOwner, open_run_owner, store_runs
from tests.manager.harness import run_scripted

MORE = run_scripted(Say(text="and so on"))


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)


def pause(terminal: CommandTerminal, owner: RunOwner) -> str:
    """Pause the run, wait for its program to exit, and return the snapshot."""
    code, out, err = terminal("pause", owner.run_id, "--message", MORE, "--json")
    assert (code, err) == (0, "")
    owner.process.wait(timeout=60)
    return str(json.loads(out)["snapshot"])


@pytest.mark.parametrize("by", ["snapshot", "run", "session"])
def test_a_paused_run_goes_on(terminal: CommandTerminal, tmp_path: Path, by: str) -> None:
    with open_run_owner(tmp_path, Say(text="ready"), Hang()) as owner:
        snapshot = pause(terminal, owner)
        id = {"snapshot": snapshot, "run": owner.run_id, "session": owner.session_id}[by]
        code, out, _ = terminal("resume", id[:14])
        assert (code, out) == (0, "and so on")
        _, out, _ = terminal("show", owner.session_id, "--json")
        first, second = json.loads(out)["runs"]
        assert (first["status"], second["status"]) == ("paused", "completed")
        assert second["resumed_from"] == owner.run_id
        assert second["provider_session_id"] == first["provider_session_id"]


def test_a_paused_run_may_get_another_message(terminal: CommandTerminal, tmp_path: Path) -> None:
    with open_run_owner(tmp_path, Say(text="ready"), Hang()) as owner:
        snapshot = pause(terminal, owner)
        code, out, _ = terminal("resume", snapshot, run_scripted(Say(text="otherwise")), "--json")
        assert code == 0
        told = [json.loads(line) for line in out.splitlines()]
        assert told[0]["type"] == "run_started"
        assert told[-1]["type"] == "run_completed"
        assert [each["content"] for each in told if each["type"] == "message_received"] == [
            "otherwise"
        ]


def test_a_run_that_its_program_left_behind_goes_on(
    terminal: CommandTerminal, tmp_path: Path
) -> None:
    with open_run_owner(tmp_path, Say(text="ready"), Hang()) as owner:
        while "ready" not in terminal("events", owner.run_id)[1]:
            pass
        code, _, err = terminal("resume", owner.run_id, MORE)
        assert code == 1
        assert f"process {owner.process.pid} owns its session" in err
        owner.process.kill()
        owner.process.wait()
        code, out, _ = terminal("resume", owner.run_id, MORE, "--clock", "idle=60")
        assert (code, out) == (0, "and so on")
        _, out, _ = terminal("show", owner.session_id, "--json")
        first, second = json.loads(out)["runs"]
        assert first["failure"]["kind"] == "manager_crashed"
        assert second["resumed_from"] == owner.run_id


def test_what_has_completed_is_reported_what_more_there_is(terminal: CommandTerminal) -> None:
    (done,) = store_runs(terminal.store, run_scripted(Say(text="x")))
    code, out, err = terminal("resume", done.id)
    assert (code, out) == (1, "")
    assert err == (
        f"sessionmgr: error: MESSAGE is missing: {done.id} has completed; give the next task: "
        f"sessionmgr resume {done.id} MESSAGE"
    )
    code, out, _ = terminal("resume", done.session_id, MORE)
    assert (code, out) == (0, "and so on")


def test_what_the_provider_does_not_know_cannot_go_on(terminal: CommandTerminal) -> None:
    (failed,) = store_runs(terminal.store, run_scripted(Fail(), starts=False))
    code, _, err = terminal("resume", failed.id)
    assert code == 1
    assert err.endswith(f"{failed.id} cannot be resumed: the provider's session is not known")


def test_a_run_that_fails_again_is_exit_code_3(terminal: CommandTerminal) -> None:
    (failed,) = store_runs(terminal.store, run_scripted(Say(text="x"), Fail()))
    code, _, err = terminal("resume", failed.id, run_scripted(Fail(message="once more")))
    assert code == 3
    assert "once more" in err
