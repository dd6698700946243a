"""`--capture` records the input and output of an agent's program."""

import json

from tests.cli.command_terminal import CommandTerminal


def test_a_run_is_captured_for_its_user_alone(terminal: CommandTerminal) -> None:
    directory = terminal.home / "wire"
    words = ["run", "-p", "shell", "--permission", "full_auto", "echo captured"]
    code, out, _ = terminal(*words, "--capture", str(directory))
    assert (code, out) == (0, "captured")
    assert directory.stat().st_mode & 0o777 == 0o700
    (path,) = directory.iterdir()
    assert path.name.endswith("-echo.jsonl")
    assert path.stat().st_mode & 0o777 == 0o600
    told = [json.loads(line) for line in path.read_text().splitlines()]
    assert [each["line"] for each in told if each["dir"] == "<"] == ["captured"]


def test_a_directory_that_cannot_be_made_is_reported(terminal: CommandTerminal) -> None:
    (terminal.home / "file").touch()
    path = terminal.home / "file" / "wire"
    code, out, err = terminal("run", "-p", "shell", "echo x", "--capture", str(path))
    why = "Not a directory; choose another directory"
    assert (code, out, err) == (1, "", f"sessionmgr: error: --capture: {path}: {why}")


def test_store_and_directory_are_the_users_alone(terminal: CommandTerminal) -> None:
    code, _, _ = terminal.bare("run", "-p", "shell", "echo x")
    assert code == 0
    store = terminal.home / "state" / "sessionmgr" / "sessionmgr.db"
    assert store.parent.stat().st_mode & 0o777 == 0o700
    for path in store.parent.iterdir():
        assert path.stat().st_mode & 0o077 == 0, path
