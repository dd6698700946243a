"""The served agent: its methods, and the sessions of its client."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import trio

from sessionmgr.acp_server.configuration import AgentContext, SessionSettings
from sessionmgr.acp_server.dialect import AcpDialect, choose_dialect
from sessionmgr.acp_server.errors import (
    BUSY,
    INVALID_PARAMS,
    INVALID_REQUEST,
    NO_SUCH_METHOD,
    NOT_FOUND,
    AcpRequestRefused,
    refusal_of,
)
from sessionmgr.acp_server.mcp_servers import read_mcp_servers
from sessionmgr.acp_server.params import (
    AcpParams,
    ConfigOptionParams,
    InitializeParams,
    JsonObject,
    ListSessionsParams,
    ModeParams,
    NewSessionParams,
    PromptParams,
    SessionParams,
    StoredSessionParams,
    read_params,
)
from sessionmgr.acp_server.prompt import ImageFiles
from sessionmgr.acp_server.session import ServedSession
from sessionmgr.acp_server.session_list import list_sessions

if TYPE_CHECKING:
    from sessionmgr.acp_server.connection import ClientConnection
    from sessionmgr.acp_server.offer import AgentOffer
    from sessionmgr.acp_server.turn import ServedTurn
    from sessionmgr.manager import Manager
    from sessionmgr.model import Json
    from sessionmgr.wire import RpcId, RpcNotification, RpcRequest

log: Final = logging.getLogger("sessionmgr.acp_server")

Work: TypeAlias = Callable[[], Awaitable["JsonObject | None"]]
"""The rest of a request; it returns the result, or None if it has responded already."""
Respond: TypeAlias = Callable[["JsonObject"], Awaitable[None]]

P = TypeVar("P", bound=AcpParams)

MOST_SESSIONS: Final = 1024
"""Sessions that may be open at once."""


class AcpAgent:
    """The agent of one client."""

    def __init__(self, manager: Manager, offer: AgentOffer, connection: ClientConnection) -> None:
        self._manager: Final = manager
        self._offer: Final = offer
        self._connection: Final = connection
        self._images: Final = ImageFiles()
        self._context: AgentContext | None = None
        self._sessions: Final[dict[str, ServedSession]] = {}
        self._prompts: Final[dict[RpcId | None, ServedTurn]] = {}

    def cancel(self) -> None:
        """Begin to end all turns."""
        for session in list(self._sessions.values()):
            session.cancel()

    def close(self) -> None:
        """Remove the files of prompts."""
        self._images.close()

    def cancel_prompt(self, id_: RpcId | None) -> bool:
        """Begin to end the turn of a prompt's request; False if there is none."""
        turn = self._prompts.get(id_)
        if turn is None:
            return False
        turn.cancel()
        return True

    def log_refusal(self, method: str, refusal: AcpRequestRefused) -> None:
        """Log why a notification had no effect."""
        log.warning("A notification had no effect. method=%s why=%s", method, refusal)

    # --- dispatch --------------------------------------------------------------------------------

    def handle(self, request: RpcRequest, respond: Respond) -> Work:
        """Begin a request, and return its rest.

        Raises:
            AcpRequestRefused: The method is unknown, or the parameters are invalid.
        """
        method, params = request.method, request.params
        if method == "initialize":
            return _done(self._initialize(read_params(params, InitializeParams)))
        dialect = self._require_dialect()
        if method == "session/prompt":
            return self._prompt(request.id, read_params(params, PromptParams), respond)
        found = self._methods(dialect).get(method)
        if found is None:
            raise AcpRequestRefused(
                NO_SUCH_METHOD, f"unknown method {method!r} in version {dialect.version}"
            )
        return found(params)

    def _methods(self, dialect: AcpDialect) -> dict[str, Callable[[bytes], Work]]:
        def to(handler: Callable[[P], Work], of: type[P]) -> Callable[[bytes], Work]:
            return lambda params: handler(read_params(params, of))

        methods = {
            "session/new": to(self._new, NewSessionParams),
            "session/list": to(self._list, ListSessionsParams),
            "session/resume": to(self._resume, StoredSessionParams),
            "session/close": to(self._close, SessionParams),
            "session/set_config_option": to(self._set_option, ConfigOptionParams),
            "_session/steering": to(self._steer, PromptParams),
        }
        if not dialect.has_states:
            methods["authenticate"] = to(self._authenticate, AcpParams)
            methods["session/load"] = to(self._load, StoredSessionParams)
            methods["session/set_mode"] = to(self._set_mode, ModeParams)
        else:
            methods["auth/login"] = to(self._authenticate, AcpParams)
        return methods

    def notice(self, notification: RpcNotification) -> None:
        """Handle a notification; unknown ones are ignored.

        Raises:
            AcpRequestRefused: Its parameters are invalid, or the session is not open.
        """
        if notification.method == "session/cancel":
            self._session(read_params(notification.params, SessionParams).session_id).cancel()

    def _require_dialect(self) -> AcpDialect:
        if self._context is None:
            raise AcpRequestRefused(INVALID_REQUEST, "the first request must be initialize")
        return self._context.dialect

    # --- the handshake ---------------------------------------------------------------------------

    def _initialize(self, params: InitializeParams) -> JsonObject:
        if self._context is not None:
            raise AcpRequestRefused(INVALID_REQUEST, "initialize was called before")
        is_v2 = params.info is not None and params.capabilities is not None
        dialect = choose_dialect(
            params.protocol_version, params.client_capabilities or {}, is_v2=is_v2
        )
        self._context = AgentContext(
            self._manager, self._offer, self._connection, dialect, self._images
        )
        info: JsonObject = {
            "name": "sessionmgr",
            "title": f"sessionmgr ({self._offer.provider})",
            "version": version("sessionmgr"),
        }
        return dialect.initialized(info, self._offer)

    def _authenticate(self, params: AcpParams) -> Work:
        del params
        raise AcpRequestRefused(
            INVALID_PARAMS,
            f"methodId: this agent offers none; log in with the program of {self._offer.provider}",
        )

    # --- sessions --------------------------------------------------------------------------------

    def _session(self, session_id: str) -> ServedSession:
        found = self._sessions.get(session_id)
        if found is None:
            raise AcpRequestRefused(
                NOT_FOUND,
                f"sessionId: {session_id!r} is not open; open it with session/new, load or resume",
                sessionId=session_id,
            )
        return found

    def _new(self, params: NewSessionParams) -> Work:
        settings = self._settings(params)

        async def work() -> JsonObject:
            session = self._make_session(settings)
            handle = await self._manager.open_session(
                self._offer.provider,
                cwd=settings.cwd,
                permission_mode=session.configuration.mode,
                approve=session.approve,
            )
            session.set_handle(handle)
            self._sessions[handle.id] = session
            return {"sessionId": handle.id, **session.configuration.state()}

        return work

    def _load(self, params: StoredSessionParams) -> Work:
        return self._reopen(params, is_replayed=True)

    def _resume(self, params: StoredSessionParams) -> Work:
        start = params.replay_from
        if start is not None and start.get("type") != "start":
            raise AcpRequestRefused(
                INVALID_PARAMS, f"replayFrom: unknown type {start.get('type')!r}; known: start"
            )
        has_states = self._require_dialect().has_states
        return self._reopen(params, is_replayed=has_states and start is not None)

    def _reopen(self, params: StoredSessionParams, *, is_replayed: bool) -> Work:
        settings, session_id = self._settings(params), params.session_id
        if not self._offer.loads:
            raise AcpRequestRefused(
                NO_SUCH_METHOD, f"{self._offer.provider} cannot continue a stored session"
            )

        async def work() -> JsonObject:
            session = self._sessions.get(session_id)
            if session is None:
                session = await self._open_stored(session_id, settings)
                session = self._sessions.setdefault(session_id, session)
            if session.is_busy:
                raise AcpRequestRefused(BUSY, f"{session_id} has a prompt that is not answered yet")
            if params.cwd is not None:
                session.require_cwd(settings.cwd)
            session.configuration.settings = settings
            if is_replayed:
                await session.replay()
            else:
                await session.read_cost()
            if self._require_dialect().has_states:
                await session.send_state("idle")
            return session.configuration.state()

        return work

    async def _open_stored(self, session_id: str, settings: SessionSettings) -> ServedSession:
        session = self._make_session(settings)
        handle = await self._manager.session(session_id, approve=session.approve, reopen=True)
        if handle.provider != self._offer.provider:
            raise AcpRequestRefused(
                NOT_FOUND,
                f"{session_id} belongs to {handle.provider}, not {self._offer.provider}",
                sessionId=session_id,
            )
        session.set_handle(handle)
        return session

    def _make_session(self, settings: SessionSettings) -> ServedSession:
        assert self._context is not None
        if len(self._sessions) >= MOST_SESSIONS:
            raise AcpRequestRefused(
                BUSY, f"{len(self._sessions)} sessions are open; close one with session/close"
            )
        session = ServedSession(self._context, settings)
        session.configuration.check()
        return session

    def _settings(self, params: NewSessionParams) -> SessionSettings:
        """Return the settings of a session.

        Raises:
            AcpRequestRefused: A path is not absolute, or the agent cannot take a setting.
        """
        offer = self._offer
        for name, path in (
            ("cwd", params.cwd or offer.cwd),
            *(("additionalDirectories", each) for each in params.additional_directories),
        ):
            if not Path(path).is_absolute():
                raise AcpRequestRefused(INVALID_PARAMS, f"{name}: not an absolute path: {path!r}")
        if params.additional_directories and not offer.directories:
            raise AcpRequestRefused(
                INVALID_PARAMS,
                f"additionalDirectories: {offer.provider} does not support them; remove them",
            )
        return SessionSettings(
            cwd=params.cwd or offer.cwd,
            directories=params.additional_directories,
            mcp_servers=read_mcp_servers(params.mcp_servers, offer),
        )

    def _list(self, params: ListSessionsParams) -> Work:
        async def work() -> JsonObject:
            return await list_sessions(self._manager, self._offer.provider, params)

        return work

    def _close(self, params: SessionParams) -> Work:
        session = self._session(params.session_id)

        async def work() -> JsonObject:
            await session.close()
            self._sessions.pop(params.session_id, None)
            return {}

        return work

    def _set_mode(self, params: ModeParams) -> Work:
        session = self._session(params.session_id)
        session.configuration.set_mode(params.mode_id)

        async def work() -> JsonObject:
            await session.send_settings()
            return {}

        return work

    def _set_option(self, params: ConfigOptionParams) -> Work:
        session = self._session(params.session_id)
        session.configuration.set_option(params.config_id, params.value)
        options = session.configuration.config_options()

        async def work() -> JsonObject:
            await session.send_settings()
            return options

        return work

    # --- turns -----------------------------------------------------------------------------------

    def _prompt(self, id_: RpcId | None, params: PromptParams, respond: Respond) -> Work:
        session = self._session(params.session_id)
        turn = self._prompts[id_] = session.enqueue(params.prompt)
        has_states = self._require_dialect().has_states

        def forget() -> None:
            if self._prompts.get(id_) is turn:
                del self._prompts[id_]

        async def accept(result: JsonObject) -> None:
            forget()  # a request that is answered can no longer be cancelled
            await respond(result)

        async def work() -> JsonObject | None:
            try:
                if has_states:
                    return await self._play_v2(session, turn, accept)
                return await session.play(turn)
            finally:
                forget()

        return work

    async def _play_v2(
        self, session: ServedSession, turn: ServedTurn, respond: Respond
    ) -> JsonObject | None:
        """Play a turn whose prompt is answered at its beginning, and whose end is an update."""
        is_inserted = False

        async def insert(message_id: str) -> None:
            nonlocal is_inserted
            is_inserted = True
            await respond({"messageId": message_id})

        try:
            end: dict[str, Json] = {**await session.play(turn, insert)}
        except Exception as error:
            if not is_inserted:
                raise
            refusal = refusal_of(error)
            message: JsonObject = {"code": refusal.code, "message": str(refusal)}
            end = {"stopReason": "error", "error": {**message, "data": refusal.data}}
        await session.send_state("idle", **end)
        return None

    def _steer(self, params: PromptParams) -> Work:
        return partial(self._session(params.session_id).steer, params.prompt)


def _done(result: JsonObject) -> Work:
    async def work() -> JsonObject:
        await trio.lowlevel.checkpoint()
        return result

    return work
