"""A client of agents over ACP for trio programs, without the manager and without a record.

It speaks version 1, by the connection and the frames of the adapter. The agent's whole process tree
ends with the block of `open_client`.

    async with open_client(["opencode", "acp"]) as client:
        async with client.session() as session:
            async for update in session.prompt("hi"):
                print(update)
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, cast

import trio

from sessionmgr.process import Command, open_launcher
from sessionmgr_adapters.acp import frames
from sessionmgr_adapters.acp.client_session import AcpClientSession
from sessionmgr_adapters.acp.errors import AcpClientError
from sessionmgr_adapters.acp.mcp import mcp_servers_of
from sessionmgr_adapters.acp.sdk import AcpConnection, AcpSpec, connect_acp
from sessionmgr_adapters.acp.v1 import V1, SessionSetup

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from pathlib import Path

    from sessionmgr.model import Json
    from sessionmgr_adapters.acp.client_session import Permit


async def reject_once(request: frames.PermissionRequest) -> str | None:
    """Return the option that rejects a request once; without one, cancel it.

    Args:
        request: The request.
    """
    await trio.lowlevel.checkpoint()
    return option_of_kind(request, "reject_once")


async def allow_once(request: frames.PermissionRequest) -> str | None:
    """Return the option that allows a request once; without one, cancel it.

    Args:
        request: The request.
    """
    await trio.lowlevel.checkpoint()
    return option_of_kind(request, "allow_once")


def option_of_kind(request: frames.PermissionRequest, kind: str) -> str | None:
    """Return the id of the first option of a kind; None if there is none.

    Args:
        request: The request.
        kind: `allow_once`, `allow_always`, `reject_once` or `reject_always`.
    """
    return next((each.option_id for each in request.options if each.kind == kind), None)


@asynccontextmanager
async def open_client(
    command: Sequence[str],
    *,
    cwd: str | Path = ".",
    env: Mapping[str, str] | None = None,
    permit: Permit = reject_once,
) -> AsyncGenerator[AcpClient, None]:
    """Start an agent that runs for the length of the block.

    Args:
        command: The program of the agent, and the arguments with which it speaks ACP.
        cwd: The directory of the agent and of its sessions.
        env: The whole environment of the agent; by default it is that of this process.
        permit: Returns the option that answers a request for permission; None cancels it.

    Raises:
        ProcessError: The agent could not be started.
        AcpClientError: It does not speak version 1, or refuses to.
    """
    place = str(await trio.Path(cwd).resolve())
    given = dict(os.environ) if env is None else dict(env)
    try:
        async with open_launcher() as launcher:
            spec = AcpSpec(
                launcher=launcher, command=Command(argv=tuple(command), cwd=place, env=given)
            )
            async with connect_acp(spec) as connection, trio.open_nursery() as nursery:
                client = AcpClient(connection, nursery, place, permit)
                client.info = await client.greet()
                yield client
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise _sole(group) from None


def _sole(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the exception of the block, without the groups of our nurseries."""
    inner: Sequence[BaseException] = group.exceptions
    if len(inner) != 1:
        return group
    if not isinstance(inner[0], BaseExceptionGroup):
        return inner[0]
    return _sole(cast("BaseExceptionGroup[BaseException]", inner[0]))


class AcpClient:
    """An agent that runs: see `open_client`."""

    def __init__(
        self, connection: AcpConnection, nursery: trio.Nursery, cwd: str, permit: Permit
    ) -> None:
        self.info = frames.Initialized(version=1)
        """What the agent has said about itself."""
        self._connection: Final = connection
        self._nursery: Final = nursery
        self._cwd: Final = cwd
        self._permit: Final = permit

    async def greet(self) -> frames.Initialized:
        """Return the agent's answer to the handshake.

        Raises:
            AcpClientError: It does not speak version 1, or refuses to.
        """
        async with self._opened(None) as session:
            hello = await session.handshake()
        if hello.version != V1.version:
            raise AcpClientError(f"the agent speaks version {hello.version} of ACP, not 1")
        return hello

    async def authenticate(self, method: str) -> None:
        """Log in by one of `info.auth_methods`.

        Args:
            method: The id of the method.

        Raises:
            AcpClientError: The agent refuses it, or exits.
        """
        async with self._opened(None) as session:
            await session.call(V1.authenticate(method))

    @asynccontextmanager
    async def session(
        self,
        resume: str | None = None,
        *,
        directories: Sequence[str | Path] = (),
        mcp_servers: Mapping[str, Json] | None = None,
    ) -> AsyncGenerator[AcpClientSession, None]:
        """Open a session for the length of the block; a turn that still runs then is cancelled.

        Args:
            resume: The id of a session to continue; by default it is a new one.
            directories: Further directories of the session.
            mcp_servers: Its MCP servers, as in `mcpServers` of an MCP configuration.

        Raises:
            AcpClientError: The agent refuses it, or exits.
            McpServerError: A server is invalid.
        """
        setup = SessionSetup(
            cwd=self._cwd,
            directories=tuple(map(str, directories)),
            mcp_servers=mcp_servers_of(mcp_servers or {}),
        )
        can = self.info.capabilities
        async with self._opened(resume) as session:
            if resume is None:
                opening = V1.new_session(setup)
            elif can.resume:
                opening = V1.resume_session(resume, setup)
            else:
                opening = V1.load_session(resume, setup)
            opened = await session.call(opening)
            assert isinstance(opened, frames.SessionOpened)
            session.opened, session.id = opened, resume or opened.session_id
            yield session

    @asynccontextmanager
    async def _opened(self, resume: str | None) -> AsyncGenerator[AcpClientSession, None]:
        session = AcpClientSession(self._connection, self._nursery, self._permit)
        session.conversation = await self._connection.open(resume, session)
        try:
            yield session
        finally:
            with trio.CancelScope(shield=True):
                await session.leave()
