"""What a provider can do for clients: probed once, before the first request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.adapter import StartRefused
from sessionmgr.manager import RunRequest
from sessionmgr.model import PermissionMode

if TYPE_CHECKING:
    from collections.abc import Collection

    from sessionmgr.manager import Manager
    from sessionmgr.model import Json

_PROBE: Final = "true"
"""A prompt that every provider accepts; it is never sent."""


class AgentOffer(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the served agent, and what its provider can do."""

    provider: str
    request: RunRequest
    """The request of each run, without its prompt."""
    cwd: str
    """The directory of sessions for which the client names none."""
    modes: tuple[PermissionMode, ...]
    models: tuple[str, ...]
    """The models from which clients may choose, beside the default."""
    images: bool
    embedded_context: bool
    """Whether prompts may contain links and resources: not if they are commands."""
    directories: bool
    mcp: bool
    """Whether clients may pass MCP servers on stdio."""
    steering: bool
    loads: bool
    """Whether a stored session can continue."""

    @property
    def mode(self) -> PermissionMode:
        """The permission mode of new sessions."""
        return PermissionMode(self.request.permission_mode or PermissionMode.DEFAULT)


def probe_offer(
    manager: Manager, provider: str, request: RunRequest, *, models: Collection[str], cwd: str
) -> AgentOffer:
    """Return what a provider can do for clients with these settings.

    Args:
        manager: The manager that runs the prompts.
        provider: The name of the provider.
        request: The settings of all runs; its prompt is ignored.
        models: The models from which clients may choose.
        cwd: The directory of sessions for which the client names none.

    Raises:
        StartRefused: No run could start with these settings.
        EnvironmentVariableInvalid: A child may not get a variable.
    """
    request = msgspec.structs.replace(request, prompt=_PROBE)
    manager.check(provider, request, cwd=cwd)
    for model in models:
        manager.check(provider, msgspec.structs.replace(request, model=model), cwd=cwd)

    def is_possible(**fields: object) -> bool:
        try:
            manager.check(provider, msgspec.structs.replace(request, **fields), cwd=cwd)
        except StartRefused:
            return False
        return True

    with_servers = {"mcp_servers": {}, **options_of(request)}
    is_command = manager.runs_commands(provider)
    return AgentOffer(
        provider=provider,
        request=request,
        cwd=cwd,
        modes=tuple(mode for mode in PermissionMode if is_possible(permission_mode=mode)),
        models=tuple(models),
        images=manager.supports(provider, "images_in"),
        embedded_context=not is_command,
        directories=is_possible(directories=(cwd,)),
        mcp=manager.supports(provider, "mcp") and is_possible(options=with_servers),
        steering=manager.supports(provider, "steer"),
        loads=is_command or manager.supports(provider, "resume"),
    )


def options_of(request: RunRequest) -> dict[str, Json]:
    """Return the options of a request by name."""
    if isinstance(request.options, msgspec.Struct):
        return msgspec.structs.asdict(request.options)
    return dict(request.options)
