"""Settings of one session: those that its client has named, its mode and its model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.acp_server.dialect import DEFAULT_MODEL, MODE_OPTION, MODEL_OPTION
from sessionmgr.acp_server.errors import (
    AUTH_REQUIRED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    AcpRequestRefused,
)
from sessionmgr.acp_server.offer import options_of
from sessionmgr.model import Json, PermissionMode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.acp_server.connection import ClientConnection
    from sessionmgr.acp_server.dialect import AcpDialect
    from sessionmgr.acp_server.offer import AgentOffer
    from sessionmgr.acp_server.params import JsonObject
    from sessionmgr.acp_server.prompt import ImageFiles
    from sessionmgr.manager import Manager, RunRequest


class AgentContext(msgspec.Struct, frozen=True):
    """The parts of the agent that its sessions share."""

    manager: Manager
    offer: AgentOffer
    connection: ClientConnection
    dialect: AcpDialect
    images: ImageFiles


class SessionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a session that its client has named."""

    cwd: str
    directories: tuple[str, ...] = ()
    mcp_servers: dict[str, Json] = {}


class SessionConfiguration:
    """The settings of a session, which hold from its next turn on."""

    def __init__(self, context: AgentContext, settings: SessionSettings) -> None:
        self._context: Final = context
        self.settings = settings
        self.mode: PermissionMode = context.offer.mode
        self.model: str | None = None

    def state(self) -> JsonObject:
        """Return the modes and options of the session."""
        return self._context.dialect.session_state(self._context.offer, self.mode, self.model)

    def config_options(self) -> JsonObject:
        """Return the options of the session."""
        return self._context.dialect.config_options(self._context.offer, self.mode, self.model)

    def set_mode(self, name: str) -> None:
        """Set the permission mode of the next turns.

        Raises:
            AcpRequestRefused: The agent does not have it.
        """
        modes = {mode.value: mode for mode in self._context.offer.modes}
        if name not in modes:
            raise AcpRequestRefused(
                INVALID_PARAMS, f"modeId: unknown mode {name!r}; known: {', '.join(modes)}"
            )
        self.mode = modes[name]

    def set_option(self, name: str, value: Json) -> None:
        """Set an option of the next turns.

        Raises:
            AcpRequestRefused: The option is unknown, or the value is not one of its choices.
        """
        models = self._context.offer.models
        if name == MODE_OPTION and isinstance(value, str):
            self.set_mode(value)
        elif name == MODEL_OPTION and models and value in {DEFAULT_MODEL, *models}:
            self.model = None if value == DEFAULT_MODEL else str(value)
        elif name in {MODE_OPTION, *([MODEL_OPTION] if models else [])}:
            known = ", ".join((DEFAULT_MODEL, *models)) if name == MODEL_OPTION else "a mode's id"
            raise AcpRequestRefused(
                INVALID_PARAMS, f"value: {name} cannot be {value!r}; known: {known}"
            )
        else:
            raise AcpRequestRefused(INVALID_PARAMS, f"configId: unknown option {name!r}")

    def updates(self) -> list[JsonObject]:
        """Return the updates after a change of the mode or an option."""
        dialect, offer = self._context.dialect, self._context.offer
        return dialect.config_updates(offer, self.mode, self.model)

    def request(self, prompt: str, images: Sequence[str] = ()) -> RunRequest:
        """Return the request of a run with the session's settings."""
        base, settings = self._context.offer.request, self.settings
        options = options_of(base)
        if settings.mcp_servers:
            known = options.get("mcp_servers")
            known = known if isinstance(known, dict) else {}
            options["mcp_servers"] = {**known, **settings.mcp_servers}
        return msgspec.structs.replace(
            base,
            prompt=prompt,
            images=tuple(images),
            permission_mode=self.mode,
            model=self.model or base.model,
            directories=(*base.directories, *settings.directories),
            options=options,
        )

    def check(self) -> None:
        """Check whether a run could start.

        Raises:
            StartRefused: It would be refused.
            AcpRequestRefused: The provider's program is missing, or has no login.
        """
        offer, manager = self._context.offer, self._context.manager
        health = manager.readiness(
            offer.provider, self.request(offer.request.prompt), cwd=self.settings.cwd
        )
        if health.state != "ok":
            code = AUTH_REQUIRED if health.state == "fail" else INTERNAL_ERROR
            raise AcpRequestRefused(code, f"{offer.provider}: {health.detail}")
