"""The configuration is read again only if one of its files has changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from trio.testing import MockClock

from sessionmgr.adapter.kit import file_fingerprint
from sessionmgr.adapter.kit.json_rpc_caller import RpcCall, RpcOutgoing
from sessionmgr.manager import open_manager
from sessionmgr.model import Json
from sessionmgr.store import MemoryStore
from sessionmgr.testing.mock_sdk import MockSdk, with_sdk
from sessionmgr_adapters.codex import CodexAdapter, config
from sessionmgr_adapters.codex.config import (
    DIRECTORIES,
    CodexConfig,
    ConfigCache,
    config_state,
)
from tests.adapters.codex.mock_agent import Talk, begin, end, opening, text, thread_of

Change = Callable[[Path], None]


def writes(name: str, content: str = "x = 10\n") -> Change:
    def change(root: Path) -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    return change


def removes(name: str) -> Change:
    return lambda root: (root / name).unlink()


def touches(name: str) -> Change:
    """Change only the time of a file."""
    return lambda root: os.utime(root / name, ns=(1, 1))


def replaces(name: str) -> Change:
    """Replace a file by another one of the same size and with the same times."""

    def change(root: Path) -> None:
        path, new = root / name, root / "new"
        before = path.stat()
        new.write_text(path.read_text()[::-1])
        os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
        new.rename(path)

    return change


def points(name: str, to: str) -> Change:
    def change(root: Path) -> None:
        (root / name).unlink()
        (root / name).symlink_to(root / to)

    return change


def makes(name: str) -> Change:
    return lambda root: (root / name).mkdir(parents=True)


async def asked(root: Path, change: Change, config: Json = None) -> list[bool]:
    """Return which of three turns have read the configuration, with a change before the last."""
    scripts: list[Talk] = []

    async def answers(it: Talk) -> None:
        scripts.append(it)
        call = await opening(it, config)
        begin(it, call)
        it.says(*text(thread_of(call), "well"))
        end(it, thread_of(call))

    async with (
        MockSdk(answers) as sdk,
        open_manager(
            store=MemoryStore(),
            adapters={"codex": with_sdk(CodexAdapter, sdk)},
            environ={"HOME": str(root)},
        ) as manager,
    ):
        session = await manager.open_session("codex", cwd=root / "project" / "part")
        for number in range(3):
            if number == 2:
                change(root)
            result = await (await session.submit("hi")).result()
            assert result.status == "completed", result
    return [any(map(_is_reading, it.heard_so_far)) for it in scripts]


def _is_reading(heard: RpcOutgoing | object) -> bool:
    return isinstance(heard, RpcCall) and heard.method == "config/read"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(file_fingerprint, "RECENT_NS", 0)
    monkeypatch.setattr(config, "SYSTEM_CONFIG_DIR", tmp_path / "system")
    writes(".codex/config.toml")(tmp_path)
    writes("project/.codex/config.toml")(tmp_path)
    makes("project/.git")(tmp_path)
    makes("project/part")(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(writes(".codex/config.toml", "model = 1\n"), id="the user's changes"),
        pytest.param(touches(".codex/config.toml"), id="the user's has another time"),
        pytest.param(replaces(".codex/config.toml"), id="the user's is another file"),
        pytest.param(points(".codex/config.toml", "other"), id="the user's is a link"),
        pytest.param(removes(".codex/config.toml"), id="the user's vanishes"),
        pytest.param(writes(".codex/work.config.toml"), id="a profile appears"),
        pytest.param(writes(".codex/cloud-config-bundle-cache.json"), id="the cloud has spoken"),
        pytest.param(writes("project/.codex/config.toml", "a = 1\n"), id="a project's changes"),
        pytest.param(removes("project/.codex/config.toml"), id="a project's vanishes"),
        pytest.param(writes("project/part/.codex/config.toml"), id="a part's appears"),
        pytest.param(makes("project/part/.git"), id="a part becomes a project"),
        pytest.param(writes("system/config.toml"), id="the machine's appears"),
        pytest.param(writes("system/requirements.toml"), id="the machine requires something"),
    ],
)
async def test_what_the_user_changes_is_seen_at_the_next_turn(
    autojump_clock: MockClock, root: Path, change: Change
) -> None:
    assert await asked(root, change) == [True, False, True]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(writes("project/part/code.py"), id="the work goes on"),
        pytest.param(writes("project/.git/HEAD"), id="something is committed"),
        pytest.param(writes(".codex/history.jsonl"), id="codex remembers something"),
    ],
)
async def test_what_is_no_configuration_makes_no_difference(
    autojump_clock: MockClock, root: Path, change: Change
) -> None:
    assert await asked(root, change) == [True, False, False]


async def test_what_marks_a_project_is_what_the_configuration_says(
    autojump_clock: MockClock, root: Path
) -> None:
    config: Json = {"project_root_markers": [".hg"]}
    # The files checked before the first turn are not those on which the answer depends.
    assert await asked(root, makes("project/.hg"), config) == [True, True, True]


def test_a_file_that_has_just_changed_may_change_once_more_unseen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    writes("home/config.toml")(tmp_path)
    monkeypatch.setattr(file_fingerprint, "RECENT_NS", 10**18)
    cache = ConfigCache()
    files = cache.state(home, str(tmp_path))
    assert files.is_recent
    cache.store(str(tmp_path), files, CodexConfig())
    assert cache.get(str(tmp_path), files) is None
    monkeypatch.setattr(file_fingerprint, "RECENT_NS", 0)
    assert not config_state(str(home), str(tmp_path)).is_recent


def test_a_directory_that_is_reached_by_a_link_is_looked_at_in_both_places(tmp_path: Path) -> None:
    writes("real/.codex/config.toml")(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    names = [each[0] for each in config_state(str(tmp_path / "none"), str(tmp_path / "link")).files]
    assert str(tmp_path / "link/.codex/config.toml") in names
    assert str(tmp_path / "real/.codex/config.toml") in names


def test_the_answers_for_so_many_directories_are_remembered(tmp_path: Path) -> None:
    cache = ConfigCache()
    files = cache.state(tmp_path / "none", str(tmp_path))
    for number in range(DIRECTORIES + 1):
        cache.store(f"/{number}", files, CodexConfig())
    assert cache.get("/0", files) is None
    assert cache.get(f"/{DIRECTORIES}", files) == CodexConfig()
