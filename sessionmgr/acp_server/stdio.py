"""The process's own stdin and stdout as the two streams of the protocol."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

_STDIN: Final = 0
_STDOUT: Final = 1
_STDERR: Final = 2


@asynccontextmanager
async def protocol_streams() -> AsyncGenerator[
    tuple[trio.abc.ReceiveStream, trio.abc.SendStream], None
]:
    """Take stdin and stdout for the protocol.

    Meanwhile no other code can read the client's messages, and what is printed appears on stderr.
    """
    stdin, stdout = os.dup(_STDIN), os.dup(_STDOUT)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, _STDIN)
    os.close(nothing)
    os.dup2(_STDERR, _STDOUT)
    source, sink = trio.lowlevel.FdStream(stdin), trio.lowlevel.FdStream(stdout)
    try:
        yield source, sink
    finally:
        with trio.CancelScope(shield=True):
            await sink.aclose()
            await source.aclose()
