"""`python -m sessionmgr.testing.model_server [PORT]`: a server for trying an agent by hand."""

from __future__ import annotations

import signal
import sys

import trio

from sessionmgr.testing.model_server.server import ModelServer, open_model_server


async def main(port: int) -> None:
    """Serve until interrupted, and print the requests."""
    # A signal receiver, because a KeyboardInterrupt is raised in any task, at any line.
    with trio.open_signal_receiver(signal.SIGINT) as interrupts:
        async with open_model_server(port=port) as server, trio.open_nursery() as nursery:
            nursery.start_soon(print_requests, server)
            async for _ in interrupts:
                nursery.cancel_scope.cancel()
                break


async def print_requests(server: ModelServer) -> None:
    """Print the address, then a line for each completed request."""
    print(server.url, flush=True)  # noqa: T201
    printed = 0
    while True:
        await server.log.wait_for_total(printed + 1)
        await server.log.wait_until_idle()
        for exchange in server.log:
            if exchange.number >= printed:
                printed = exchange.number + 1
                http = exchange.http
                print(  # noqa: T201
                    f"{exchange.number} {http.method} {http.target} {exchange.status} "
                    f"reply={exchange.reply} {exchange.ending}",
                    flush=True,
                )


if __name__ == "__main__":
    trio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    sys.exit(130)
