"""What is read before Kimi is started: its release, its settings, its sessions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sessionmgr.manager import open_manager
from sessionmgr.model import Failure, FailureKind, Json, PermissionMode
from sessionmgr.store import MemoryStore
from sessionmgr_adapters.kimi import KimiAdapter, KimiOptions
from sessionmgr_adapters.kimi.installation import (
    is_stored,
    last_message,
    program_fault,
    session_directory,
    widening_fault,
)

SESSION = "3c609bb8-4c63-42c4-94f4-8cff8fe58cf8"


def install(root: Path, version: str | None, name: str = "kimi-cli", at: str = ".") -> Path:
    """Return a script, installed beside a package, that leaves a trace if it is started."""
    program = root / "bin" / name
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\ntouch {root}/started\necho it is no longer maintained\n")
    program.chmod(0o755)
    if version is not None:
        package = f"lib/python3.13/site-packages/kimi_cli-{version}.dist-info"
        (root / at / package).mkdir(parents=True)
    return program


async def run_with(env: dict[str, str], cwd: Path, **more: Json) -> Failure:
    """Return the failure of a run."""
    async with open_manager(
        store=MemoryStore(), adapters={"kimi": KimiAdapter}, environ=env
    ) as manager:
        session = await manager.open_session("kimi", cwd=cwd)
        result = await (await session.submit("hi", **more)).result()  # type: ignore[arg-type]
    assert result.failure is not None
    return result.failure


@pytest.mark.parametrize("version", ["1.49.2", "1.51.0", "1.52.0", "2.0", None])
@pytest.mark.parametrize("name", ["kimi", "kimi-cli"])
async def test_a_release_without_the_wire_is_never_started(
    tmp_path: Path, version: str | None, name: str
) -> None:
    program = install(tmp_path, version, name)
    failure = await run_with({"PATH": "/bin"}, tmp_path, options={"command": [str(program)]})
    assert failure.kind is FailureKind.CONFIG_INVALID
    shown = "is not known to be kimi-cli 1.50" if version is None else f"is kimi-cli {version}"
    assert f"{program} {shown}" in failure.message
    assert "install kimi-cli==1.50.0" in failure.message
    assert "set options.code" in failure.message
    assert not (tmp_path / "started").exists()


def test_the_release_is_found_by_links_interpreters_and_launchers(tmp_path: Path) -> None:
    real = install(tmp_path / "tool", "1.50.0")
    link = tmp_path / "kimi-cli"
    link.symlink_to(real)
    launcher = install(tmp_path / "launched", "1.50.3", at="venv")
    script = install(tmp_path / "script", None)
    script.write_text(f"#!{tmp_path}/tool/bin/python\n")
    for program in (real, link, launcher, script):
        assert program_fault([str(program)], {}, "/") is None, program
    assert program_fault(["kimi-cli"], {"PATH": str(tmp_path)}, "/") is None
    (tmp_path / "tool/lib/python3.13/site-packages/kimi_cli-1.52.0.dist-info").mkdir()
    why = program_fault([str(real)], {}, "/")
    assert why is not None
    assert "is kimi-cli 1.52.0" in why
    empty = install(tmp_path / "empty", None)
    empty.write_text("")
    assert program_fault([str(empty)], {}, "/") is not None


async def test_a_wrapper_is_judged_by_its_words(tmp_path: Path) -> None:
    program = install(tmp_path, None, "my-kimi")
    failure = await run_with(
        {"PATH": "/bin:/usr/bin"}, tmp_path, options={"command": [str(program)]}
    )
    assert failure.kind is FailureKind.CONFIG_INVALID
    assert "no longer maintained; install kimi-cli==1.50.0" in failure.message


def test_readiness_names_the_problem_and_the_remedy(tmp_path: Path) -> None:
    program = install(tmp_path, "1.52.0")
    env = {"PATH": str(program.parent)}
    old = KimiAdapter.readiness(KimiOptions(), env, "/")
    assert (old.state, "install kimi-cli==1.50.0" in old.detail) == ("fail", True)
    none = KimiAdapter.readiness(KimiOptions(), {"PATH": "/nowhere"}, "/")
    assert (none.state, "install kimi-cli==1.50.0" in none.detail) == ("skip", True)
    (tmp_path / "lib/python3.13/site-packages/kimi_cli-1.52.0.dist-info").rename(
        tmp_path / "lib/python3.13/site-packages/kimi_cli-1.50.0.dist-info"
    )
    assert KimiAdapter.readiness(KimiOptions(), env, "/").state == "ok"


def settings(env: dict[str, str], cwd: Path, config: str, **approval: Json) -> None:
    """Write Kimi's configuration, and the state of a session."""
    place = session_directory(env, str(cwd), SESSION)
    place.mkdir(parents=True, exist_ok=True)
    (place / "state.json").write_text(json.dumps({"approval": approval}))
    Path(env["KIMI_SHARE_DIR"], "config.toml").write_text(config)


async def test_settings_that_allow_everything_are_found(tmp_path: Path) -> None:
    env = {"KIMI_SHARE_DIR": str(tmp_path)}
    cwd = str(tmp_path)
    assert widening_fault(env, cwd, SESSION) is None
    cases: list[tuple[str, dict[str, Json], str | None]] = [
        ("", {}, None),
        ("default_yolo = false", {"yolo": False, "auto_approve_actions": []}, None),
        ("default_yolo = true", {}, "default_yolo"),
        ("", {"yolo": True}, "yolo is True"),
        ("", {"afk": True}, "afk is True"),
        ("", {"auto_approve_actions": ["run command"]}, "run command"),
        ("[oh", {}, "cannot be read"),
    ]
    for config, approval, words in cases:
        settings(env, tmp_path, config, **approval)
        why = widening_fault(env, cwd, SESSION)
        assert (why is None) == (words is None), why
        assert (words or "") in (why or "")
    assert widening_fault({"HOME": "/nowhere"}, cwd, None) is None
    (tmp_path / "config.toml").unlink()
    (tmp_path / "config.json").write_text('{"default_yolo": true}')
    assert "config.json: default_yolo" in str(widening_fault(env, cwd, None))
    settings(env, tmp_path, "default_yolo = true")
    failure = await run_with({**env, "PATH": "/nowhere"}, tmp_path)
    assert (failure.kind, failure.phase) == (FailureKind.PERMISSION_REFUSED, "start")
    assert str(tmp_path / "config.toml") in failure.message
    home: dict[str, Json] = {"home": str(tmp_path / "other")}
    other = await run_with({**env, "PATH": "/nowhere"}, tmp_path, options=home)
    assert other.kind is FailureKind.CLI_NOT_FOUND
    free = PermissionMode.FULL_AUTO.value
    granted = await run_with({**env, "PATH": "/nowhere"}, tmp_path, permission_mode=free)
    assert granted.kind is FailureKind.CLI_NOT_FOUND


async def test_a_prompt_that_kimi_would_execute_is_refused(tmp_path: Path) -> None:
    async with open_manager(
        store=MemoryStore(), adapters={"kimi": KimiAdapter}, environ={"PATH": "/nowhere"}
    ) as manager:
        session = await manager.open_session("kimi", cwd=tmp_path)
        for prompt in ("/yolo", " /afk now", "/skill:x"):
            failure = (await (await session.submit(prompt)).result()).failure
            assert failure is not None
            assert failure.kind is FailureKind.CONFIG_INVALID
            assert repr(prompt.split()[0]) in failure.message
        for prompt in ("/usr/bin is a path", "use /yolo", "/ yolo"):
            failure = (await (await session.submit(prompt)).result()).failure
            assert failure is not None
            assert failure.kind is FailureKind.CLI_NOT_FOUND


def test_the_last_message_of_a_session_is_read_from_its_file(tmp_path: Path) -> None:
    assert last_message(tmp_path) is None
    file = tmp_path / "context.jsonl"
    lines: list[object] = [{"role": "user", "content": "x"}]
    file.write_text("\n".join(map(json.dumps, lines)))
    assert last_message(tmp_path) is None
    lines.append({"role": "assistant", "content": "one"})
    lines.append({"role": "_usage", "token_count": 3})
    file.write_text("\n".join(map(json.dumps, lines)) + "\n{half")
    assert last_message(tmp_path) == "one"
    parts = [{"type": "think", "think": "?"}, {"type": "text", "text": "two"}, "odd"]
    lines.append({"role": "assistant", "content": parts})
    file.write_text("\n".join(map(json.dumps, lines)))
    assert last_message(tmp_path) == "two"


def test_a_session_belongs_to_its_directory(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    place = session_directory(env, "/", SESSION)
    assert place == tmp_path / ".kimi/sessions/6666cd76f96956469e7be39d750cc7d9" / SESSION
    assert not is_stored(env, "/", SESSION)
    place.mkdir(parents=True)
    (place / "context.jsonl").touch()
    assert is_stored(env, "/", SESSION)
