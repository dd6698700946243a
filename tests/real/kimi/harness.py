"""A manager with a real Kimi, whose only reachable host is the scripted model."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio

from sessionmgr.manager import Clocks, open_manager
from sessionmgr.store import MemoryStore, Store
from sessionmgr.testing.model_server import ModelServer
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from sessionmgr_adapters.kimi import KimiAdapter
from tests.real.harness import CLOSE, PATIENCE, RealAgentHarness, line_of, nothing_is_left

VERSION: Final = "1.50.0"
CONFIG: Final = """\
default_model = "scripted"
telemetry = false

[models.scripted]
provider = "scripted"
model = "scripted-model"
max_context_size = 100000
capabilities = ["image_in", "thinking"]

[providers.scripted]
type = "openai_legacy"
base_url = "{url}/v1"
api_key = "sk-scripted"

[loop_control]
max_retries_per_step = {attempts}
"""


def kimi_environment(
    hermitage: IsolatedEnvironment, *, attempts: int = 2, more: str = ""
) -> dict[str, str]:
    """Return the environment of a Kimi, and write its configuration; `more` precedes it."""
    share = hermitage.root / "kimi"
    share.mkdir(exist_ok=True)
    text = more + CONFIG.format(url=hermitage.url, attempts=attempts)
    (share / "config.toml").write_text(text)
    env = {**hermitage.claude(), "KIMI_SHARE_DIR": str(share), "KIMI_CLI_NO_AUTO_UPDATE": "1"}
    return {name: value for name, value in env.items() if not name.startswith(("ANTHROPIC", "CL"))}


@asynccontextmanager
async def open_house(
    server: ModelServer,
    program: Path,
    work: Path,
    env: dict[str, str],
    *,
    store: Store | Path | None = None,
    **clocks: float,
) -> AsyncGenerator[RealAgentHarness, None]:
    """Open a manager; at the end its record must be lawful, and no process may be left."""
    store = MemoryStore() if store is None else store
    with trio.fail_after(PATIENCE):
        async with open_manager(
            store=store,
            adapters={"kimi": KimiAdapter},
            environ=env,
            clocks=Clocks(**{"close": CLOSE, **clocks}),
        ) as manager:
            house = RealAgentHarness("kimi", manager, server, program, work, env)
            yield house
    await nothing_is_left(house, store)


def kimi_pids(work: Path) -> list[int]:
    """Return Kimi's own processes below a directory, which have overwritten their command lines."""
    pids = (int(each.name) for each in Path("/proc").glob("[0-9]*"))
    mine = (pid for pid in pids if line_of(pid).startswith(b"Kimi Code"))
    return [pid for pid in mine if Path(f"/proc/{pid}/cwd").readlink().is_relative_to(work)]


def kimis_in(work: Path) -> int:
    """Return the number of Kimi's processes below a directory."""
    return len(kimi_pids(work))
