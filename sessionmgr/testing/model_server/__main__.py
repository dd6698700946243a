"""`python -m sessionmgr.testing.model_server [PORT]`: a server to try an agent against, by hand."""

from __future__ import annotations

import sys

import trio

from sessionmgr.testing.model_server.server import open_model_server


async def main(port: int) -> None:
    """Serve until interrupted, and tell what was asked."""
    async with open_model_server(port=port) as server:
        print(server.url, flush=True)  # noqa: T201
        told = 0
        while True:
            await server.log.reached(told + 1)
            await server.log.settled()
            for exchange in server.log:
                if exchange.number >= told:
                    told = exchange.number + 1
                    http = exchange.http
                    print(  # noqa: T201
                        f"{exchange.number} {http.method} {http.target} {exchange.status} "
                        f"reply={exchange.reply} {exchange.ending}",
                        flush=True,
                    )


if __name__ == "__main__":
    try:
        trio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    except KeyboardInterrupt:
        sys.exit(130)
