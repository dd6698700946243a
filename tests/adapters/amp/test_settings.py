"""Settings of Amp: what a run adds to the user's, and what a project may not add."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Unpack

import pytest

from sessionmgr.adapter import PermissionRefused
from sessionmgr.adapter.kit import FileRefusedError
from sessionmgr.manager import RunRequestInvalid, RunRequestUnsupported
from sessionmgr.manager.argument_checks import request_of_arguments
from sessionmgr.manager.run_plan import RunArguments
from sessionmgr.model import FailureKind, Json, PermissionMode
from sessionmgr_adapters.amp import AmpAdapter, AmpOptions
from sessionmgr_adapters.amp.frames import AmpInit
from sessionmgr_adapters.amp.launch import AmpSpec, amp_health
from sessionmgr_adapters.amp.settings import read_settings
from tests.adapters.amp.mock_agent import (
    ENVIRON,
    Talk,
    agent_of_frames,
    manager_of,
    opening,
    play,
    success,
    text,
)

ALLOW: Json = {"tool": "Bash", "action": "allow"}
ASK: Json = {"tool": "Bash", "action": "ask"}
RESTRICTIONS: list[Json] = [
    {"amp.permissions": [ASK]},
    {"amp.dangerouslyAllowAll": False},
    {"amp.guardedFiles.allowlist": []},
]


def write(path: Path, settings: Json) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings))


def test_settings_may_have_comments(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    assert read_settings(path) is None
    path.write_text(
        '{ // a "comment"\n "amp.url": "http://a//b", /* and,\n more } */ "b": [1, 2, ], '
        '"c": "/*,]",\n}'
    )
    assert read_settings(path) == {"amp.url": "http://a//b", "b": [1, 2], "c": "/*,]"}
    path.write_text("")
    assert read_settings(path) == {}
    for wrong in ("[]", "{", '{"a": }'):
        path.write_text(wrong)
        with pytest.raises(FileRefusedError, match=r"settings\.json is not a JSON object"):
            read_settings(path)


async def refusal(
    place: Path,
    mode: str = "default",
    settings_of: Path | None = None,
    **wishes: Unpack[RunArguments],
) -> str:
    """Return why a run is refused before anything starts; an empty text if it is not."""
    environ = {**ENVIRON, "XDG_CONFIG_HOME": str((settings_of or place) / "config")}
    async with manager_of(agent_of_frames, environ) as (manager, sdk):
        session = await manager.open_session("amp", cwd=place, permission_mode=PermissionMode(mode))
        async with session.start("hi", **wishes) as run:
            failure = (await run.result()).failure
        if failure is None:
            return ""
        assert failure.kind is FailureKind.CONFIG_INVALID
        assert not sdk.connections
        with pytest.raises(RunRequestInvalid) as refused:
            session.check(request_of_arguments("submit", "hi", wishes))
        assert failure.message in str(refused.value)
        return failure.message


async def test_a_project_may_only_restrict(tmp_path: Path) -> None:
    project, ours = tmp_path / ".amp" / "settings.json", tmp_path / "config/amp/settings.json"
    (tmp_path / ".git").mkdir()
    widening: list[dict[str, Json]] = [
        {"amp.permissions": [ASK, ALLOW]},
        {"amp.permissions": [{"tool": "Bash", "action": "delegate", "to": "./x"}]},
        {"amp.dangerouslyAllowAll": True},
        {"amp.guardedFiles.allowlist": ["**"]},
    ]
    for settings in widening:
        write(project, settings)
        write(ours, {})  # without rules Amp allows everything itself
        assert not await refusal(tmp_path)
        for restriction in RESTRICTIONS:
            write(ours, restriction)
            why = await refusal(tmp_path)
            assert f"{project} sets {next(iter(settings))}" in why
            assert "trust_project" in why
            assert not await refusal(tmp_path, options={"trust_project": True})
            assert not await refusal(tmp_path, mode="full_auto")
        write(ours, {})
        assert str(project) in await refusal(tmp_path, options={"permissions": [ASK]})
    write(project, {"amp.permissions": [ASK], "amp.dangerouslyAllowAll": False})
    assert not await refusal(tmp_path, options={"permissions": [ASK]})
    write(project, {"amp.tools.enable": ["*"]})
    assert "amp.tools.enable" in await refusal(tmp_path, tools_allowed=["Read"])
    (tmp_path / "below").mkdir()
    write(ours, {"amp.permissions": [ASK]})
    write(project, {"amp.permissions": [ALLOW]})
    assert str(project) in await refusal(tmp_path / "below", settings_of=tmp_path)
    (tmp_path / "below" / ".git").mkdir()  # outside of its repository are other projects
    assert not await refusal(tmp_path / "below", settings_of=tmp_path)
    project.write_text("{")
    assert f"settings: {project} is not a JSON object" in await refusal(tmp_path)


async def test_impossible_settings_are_refused_before_the_start(tmp_path: Path) -> None:
    assert "tools_allowed: the list is empty" in await refusal(tmp_path, tools_allowed=[])
    assert "images: 5 images; Amp accepts at most 4" in await refusal(tmp_path, images=["x"] * 5)
    missing = await refusal(tmp_path, options={"settings_file": "mine.json"})
    assert f"options.settings_file: {tmp_path / 'mine.json'} does not exist" in missing
    ignored = await refusal(tmp_path, mode="full_auto", options={"permissions": [ALLOW]})
    assert "options.permissions: Amp applies no rules in mode full_auto" in ignored
    wrong: list[tuple[dict[str, Json], str]] = [
        ({"tool": "x", "action": "delegate"}, 'needs the field "to"'),
        ({"tool": "x", "action": "ask", "to": "y"}, 'needs the field "to"'),
        ({"tool": "x", "action": "allowed"}, "`$.action`"),
        ({"tool": "x", "action": "ask", "match": {}}, "unknown field `match`"),
    ]
    for rule, why in wrong:
        found = await refusal(tmp_path, options={"permissions": [rule]})
        assert found.startswith(f"options.permissions: {json.dumps(rule, separators=(',', ':'))}: ")
        assert why in found


async def test_modes_and_fields_that_amp_lacks_are_refused(tmp_path: Path) -> None:
    for mode in ("accept_edits", "plan"):
        with pytest.raises(PermissionRefused):
            await play(agent_of_frames, mode=mode)
    with pytest.raises(RunRequestUnsupported, match="directories"):
        await play(agent_of_frames, directories=[str(tmp_path)])


async def test_the_argv_has_the_mode_and_the_options(tmp_path: Path) -> None:
    settings = tmp_path / "mine.json"
    write(settings, {})
    options = AmpOptions(mode="high", visibility="private", settings_file=str(settings))
    # Inside of an Amp, the first would nest the thread, the second change the directory.
    environ = {**ENVIRON, "AMP_THREAD_ID": "T-1", "AMP_PWD": "/", "AMP_URL": "http://127.0.0.1:9"}
    async with manager_of(agent_of_frames, environ) as (manager, sdk):
        for mode in ("full_auto", "dangerously_skip_permissions", "default"):
            session = await manager.open_session("amp", permission_mode=PermissionMode(mode))
            async with session.start("hi", options=options) as run:
                result = await run.result()
            assert result.permission is not None
            assert result.permission.confined is False
            spec = sdk.connections[-1].spec
            assert isinstance(spec, AmpSpec)
            argv, env = spec.command.argv, spec.command.env
            assert ("--dangerously-allow-all" in argv) == (mode != "default")
            flags = ("--mode", "high", "--visibility", "private", "--settings-file", str(settings))
            assert argv[-6:] == flags
            assert {name for name in env if name.startswith("AMP_")} == {"AMP_API_KEY", "AMP_URL"}


async def test_tools_that_the_settings_did_not_remove_fail_the_run() -> None:
    async def script(it: Talk) -> None:
        await opening(it, "Read", "Bash", "mcp__a__b", 7)
        it.says(text("well", "end_turn"))
        await it.heard()
        it.says(success("well"))

    async def in_one_read(it: Talk) -> None:
        await it.heard()
        it.says(AmpInit(subtype="init", tools=["Bash"]), text("well", "end_turn"), success("well"))

    hasty, _ = await play(in_one_read, tools_denied=["B*"])
    assert (hasty.status, hasty.text) == ("failed", "")
    fine, _ = await play(script, tools_allowed=["Read", "Bash", "mcp__a__*"])
    assert fine.text == "well"
    for field in ("tools_allowed", "tools_denied"):
        wrong, _ = await play(script, **{field: ["Bash"]})  # type: ignore[arg-type]
        assert wrong.failure is not None
        assert wrong.failure.kind is FailureKind.PERMISSION_REFUSED
        named = "Read, mcp__a__b" if field == "tools_allowed" else "Bash"
        assert wrong.failure.message.startswith(f"{field}: Amp offers {named} to the model")


def test_health_names_the_missing_program_or_key(tmp_path: Path) -> None:
    options, place = AmpOptions(), str(tmp_path)
    missing = amp_health(options, {"PATH": place, "AMP_API_KEY": "x"}, place)
    assert (missing.state, "npm install -g @ampcode/cli" in missing.detail) == ("skip", True)
    program = tmp_path / "amp"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    keyless = AmpAdapter.readiness(options, {"PATH": place}, place)
    assert (keyless.state, "AMP_API_KEY is not set" in keyless.detail) == ("fail", True)
    assert amp_health(options, {"PATH": place, "AMP_API_KEY": "x"}, place).state == "ok"
