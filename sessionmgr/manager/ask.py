"""One prompt and its result, with a manager for this run alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Unpack

from sessionmgr.manager.argument_checks import ArgumentKind, require_arguments
from sessionmgr.manager.errors import ArgumentValueInvalid
from sessionmgr.manager.manager import Manager, open_manager

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sessionmgr.adapter import ProviderAdapter
    from sessionmgr.manager.run_plan import RunArguments
    from sessionmgr.model import RunResult
    from sessionmgr.store import Store


def _is_manager(value: object) -> bool:
    return isinstance(value, Manager)


_MANAGER: Final = {"manager": ArgumentKind(_is_manager, "the Manager of an open block")}


async def ask(
    provider: str,
    prompt: str,
    *,
    cwd: str | Path = ".",
    manager: Manager | None = None,
    store: Store | str | Path | None = None,
    adapters: Mapping[str, type[ProviderAdapter]] | None = None,
    agents: str | Path | None = None,
    **wishes: Unpack[RunArguments],
) -> RunResult:
    """Run one prompt in a new session, and return the result.

    A failed run returns a result as well: look at its `status` and `failure`. If the caller is
    cancelled, the run is cancelled, too.

    Args:
        provider: The name of an installed provider, such as "claude" or "codex".
        prompt: The prompt, which must not be empty.
        cwd: The directory in which the agent works; by default the current one.
        manager: An open manager that runs the prompt; by default one is opened for this run.
        store: The file or the store for the events of the run; by default they are kept in
            memory until the call returns. It excludes `manager`.
        adapters: Adapters by their providers' names, which precede the installed ones. They
            exclude `manager`.
        agents: A registry file of agents, which adds the providers `acp:ID`. It excludes
            `manager`.
        wishes: The arguments of `SessionHandle.start`, such as `model`, `permission_mode`,
            `budget`, `clocks`, `approve`, `schema` and `options`.

    Raises:
        StartRefused: The provider cannot run it, or not in this way.
        TypeError: An argument has a wrong type or an unknown name.
        ValueError: An argument has an invalid value.
        NotInTrio: The caller is not a trio task.
        ManagerDown: The manager does not start; `__cause__` is the reason.

    Example:
        ```python
        async def main() -> None:
            result = await sessionmgr.ask("claude", "Summarize README.md", cwd="web")
            print(result.status, result.text)
        ```
    """
    if manager is None:
        async with open_manager(store=store, adapters=adapters, agents=agents) as opened:
            return await opened.ask(provider, prompt, cwd=cwd, **wishes)
    require_arguments("ask", _MANAGER, {"manager": manager})
    for name, value in {"store": store, "adapters": adapters, "agents": agents}.items():
        if value is not None:
            raise ArgumentValueInvalid("ask", name, value, "the given manager has its own; omit it")
    return await manager.ask(provider, prompt, cwd=cwd, **wishes)
