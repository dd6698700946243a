"""The checks of `doctor`: one function each, and none of them raises."""

from __future__ import annotations

import os
import resource
import shutil
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter import StartRefused, find_adapter, installed_adapters
from sessionmgr.cli.check_result import CheckResult
from sessionmgr.cli.config.paths import find_working_directory, nearest_settings, user_settings
from sessionmgr.cli.errors import CommandLineInvalid
from sessionmgr.cli.parser import did_you_mean
from sessionmgr.cli.provider_checks import check_all_providers, check_providers
from sessionmgr.cli.queries import ALIVE, PATIENCE, live_leases
from sessionmgr.cli.terminal.format import format_duration, pluralize
from sessionmgr.errors import SessionmgrError
from sessionmgr.process import (
    PER_CHILD,
    RESERVE,
    Command,
    SpawnerLauncher,
    open_launcher,
    open_tree,
)
from sessionmgr.store import SCHEMA_VERSION, StoreError, StoreUnusable, open_sqlite_store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from sessionmgr.cli.config.configuration import Configuration
    from sessionmgr.store import SqliteStore

LITTLE_SPACE: Final = 200_000_000
FEW_FILES: Final = 256
LAUNCH_PATIENCE: Final = 20.0
_NEEDED: Final = ("trio", "msgspec", "trio-util")


async def run_checks(configuration: Configuration, names: Sequence[str]) -> list[CheckResult]:
    """Run the named checks, or all of them.

    Raises:
        CommandLineInvalid: A name matches no check.
        StartRefused: A name is a variant of a provider, such as `acp:goose`, that does not exist.
    """
    matters: dict[str, Callable[[], Awaitable[list[CheckResult]]]] = {
        "versions": lambda: _run_concurrently(_versions()),
        "settings": lambda: _run_concurrently(_settings(configuration)),
        "store": lambda: _store(configuration),
        "processes": _processes,
        "limits": lambda: _run_concurrently(_limits()),
    }
    providers = installed_adapters()
    known = [*matters, "providers", *providers]
    for name in names:
        if name not in known and name.partition(":")[0] in providers:
            find_adapter(name, agents=configuration.agents)
        elif name not in known:
            hint = did_you_mean(name, known) or f"; known: {', '.join(known)}"
            raise CommandLineInvalid(f"doctor: unknown check {name!r}{hint}")
    checks: list[CheckResult] = []
    for name, look in matters.items():
        if not names or name in names:
            checks += await look()
    if not names or "providers" in names:
        return checks + await check_all_providers(configuration)
    return checks + await check_providers(
        [each for each in names if each not in matters], configuration
    )


async def _run_concurrently(checks: list[CheckResult]) -> list[CheckResult]:
    """Return results that needed no waiting, from an async function like the other checks."""
    await trio.lowlevel.checkpoint()
    return checks


def _versions() -> list[CheckResult]:
    found = ", ".join(f"{name} {version(name)}" for name in _NEEDED)
    python = f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
    return [
        CheckResult(name="python", detail=f"{python} ({sys.executable})"),
        CheckResult(name="packages", detail=f"sessionmgr {version('sessionmgr')}, {found}"),
    ]


def _settings(configuration: Configuration) -> list[CheckResult]:
    start = find_working_directory()
    paths = [user_settings(), None if start is None else nearest_settings(start)]
    read = [str(path) for path in paths if path is not None and path.is_file()]
    said = ", ".join(read) if read else f"no file ({paths[0]} does not exist)"
    changed = sorted(configuration.sources)
    more = f"; set: {', '.join(changed)}" if changed else ""
    check = CheckResult(name="settings", detail=said + more)
    if configuration.refused:
        keys = ", ".join(".".join(each.key) for each in configuration.refused)
        check = CheckResult(
            name="settings",
            state="skip",
            detail=f"{said}{more}; refused from the project: {keys}",
            next=f"read it, then run: sessionmgr trust {configuration.refused[0].path.parent}",
        )
    return [check, *_named_provider(configuration)]


def _named_provider(configuration: Configuration) -> list[CheckResult]:
    """Report a provider in the settings that does not exist."""
    provider, known = configuration.provider, installed_adapters()
    if provider is None or provider in known:
        return []
    where = configuration.sources.get("provider", "the settings")
    detail = f"unknown provider {provider!r}{did_you_mean(provider, known)}"
    if provider.partition(":")[0] in known:
        try:
            find_adapter(provider, agents=configuration.agents)
        except StartRefused as error:
            detail = str(error)
        else:
            return []
    return [
        CheckResult(
            name="provider",
            state="fail",
            detail=f"{where}: {detail}",
            next=f"set provider to one of: {', '.join(known)}",
        )
    ]


# --- the store -----------------------------------------------------------------------------------


async def _store(configuration: Configuration) -> list[CheckResult]:
    path = configuration.store
    absent = _missing_store(path)
    if absent is not None:
        return [absent, _space(path)]
    if not path.is_file():  # its permissions are not those of a store
        return [await _open_store(path), _space(path)]
    return [await _open_store(path), _privacy(path), _space(path)]


def _missing_store(path: Path) -> CheckResult | None:
    """Report a store that does not exist yet, and whether it could be created."""
    if path.exists():
        return None
    nearest = next(each for each in path.absolute().parents if each.exists())
    if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
        return CheckResult(
            name="store", detail=f"{path} does not exist yet; the first run creates it"
        )
    return CheckResult(
        name="store",
        state="fail",
        detail=f"{path} does not exist and cannot be created: {nearest} is not writable",
        next="choose another file with --store, SESSIONMGR_STORE or store in sessionmgr.toml",
    )


async def _open_store(path: Path) -> CheckResult:
    name = "store"
    try:
        async with open_sqlite_store(path, patience=PATIENCE) as store:
            said = await _contents(store)
    except StoreError as error:
        remedy = error.remedy if isinstance(error, StoreUnusable) else ""
        detail = str(error).removesuffix(f"; {remedy}")
        return CheckResult(name=name, state="fail", detail=detail, next=remedy)
    return CheckResult(name=name, detail=f"{path}, schema {SCHEMA_VERSION}; {said}")


async def _contents(store: SqliteStore) -> str:
    held = await live_leases(store)
    on = orphaned = 0
    cursor: int | None = None
    while True:
        page = await store.runs(statuses=ALIVE, limit=1000, cursor=cursor)
        for run in page.rows:
            on += run.session_id in held
            orphaned += run.session_id not in held
        cursor = page.cursor
        if cursor is None:
            break
    detail = f"{pluralize(on, 'run is', 'runs are')} active"
    if orphaned:
        detail += f", {pluralize(orphaned, 'is', 'are')} orphaned (the next run or batch ends them)"
    return detail


def _privacy(path: Path) -> CheckResult:
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        return CheckResult(
            name="store privacy",
            state="fail",
            detail=f"other users can read or write {path} (mode {mode:04o})",
            next=f"chmod 600 {path}",
        )
    size = path.stat().st_size / 1_000_000
    return CheckResult(name="store privacy", detail=f"mode {mode:04o}, {size:.1f} MB")


def _space(path: Path) -> CheckResult:
    nearest = next(each for each in (path, *path.absolute().parents) if each.exists())
    free = shutil.disk_usage(nearest).free
    detail = f"{free / 1_000_000_000:.1f} GB free on the disk of the store"
    if free < LITTLE_SPACE:
        return CheckResult(
            name="disk",
            state="fail",
            detail=detail,
            next="free some space, or choose another store (--store)",
        )
    return CheckResult(name="disk", detail=detail)


# --- processes -----------------------------------------------------------------------------------


async def _processes() -> list[CheckResult]:
    """Start a child process and stop it: nothing less shows that launching works."""
    name = "processes"
    began = trio.current_time()
    try:
        with trio.fail_after(LAUNCH_PATIENCE):
            async with open_launcher() as launcher:
                command = Command(argv=(sys.executable, "-c", ""), cwd="/", env={}, stdin=False)
                async with open_tree(launcher, command) as tree:
                    await tree.wait_exit()
                has_subreaper = isinstance(launcher, SpawnerLauncher)
    except (SessionmgrError, OSError, trio.TooSlowError) as error:
        return [
            CheckResult(
                name=name,
                state="fail",
                detail=f"no child could be started: {str(error) or 'it took too long'}",
                next="check the limits on processes of this user (ulimit -u) and of the container",
            )
        ]
    took = format_duration(trio.current_time() - began)
    if not has_subreaper:
        return [
            CheckResult(
                name=name,
                state="skip",
                detail="no subreaper on this system: children are owned by process groups, and a "
                "process that leaves its group survives",
                next="use Linux 5.4 or newer (pidfds) if that matters",
            )
        ]
    return [
        CheckResult(
            name=name,
            detail=f"a subreaper owns each child tree; a test child started and ended in {took}",
        )
    ]


def _limits() -> list[CheckResult]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = hard if hard != resource.RLIM_INFINITY else 1 << 20
    room = max(0, (limit - RESERVE) // PER_CHILD)
    detail = f"open files: {soft}, can be raised to {limit}: enough for about {room} children"
    if limit < FEW_FILES:
        return [
            CheckResult(
                name="limits", state="fail", detail=detail, next=f"ulimit -Hn {FEW_FILES * 16}"
            )
        ]
    return [CheckResult(name="limits", detail=detail)]
