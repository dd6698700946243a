"""Any bytes from a client: the server answers each line or ignores it, and goes on."""

import json
from typing import Any

import trio
from hypothesis import given, settings, strategies as st

from tests.acp_server.client import serving

METHODS = [
    *(
        "initialize",
        "session/new",
        "session/load",
        "session/prompt",
        "session/cancel",
        "session/list",
    ),
    *("session/set_mode", "$/cancel_request", "_session/steering", "session/close", "x"),
]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
fields = st.sampled_from(["sessionId", "prompt", "cwd", "mcpServers", "protocolVersion", "modeId"])
messages = st.fixed_dictionaries(
    {"method": st.sampled_from(METHODS)},
    optional={
        "id": values,
        "params": values | st.dictionaries(fields, values),
        "result": values,
        "error": values,
    },
)
lines = st.binary(max_size=30).map(lambda data: data.replace(b"\n", b"")) | messages.map(
    lambda message: json.dumps(message).encode()
)


@settings(max_examples=40)
@given(sent=st.lists(lines, max_size=5))
def test_any_lines_leave_the_server_in_order(sent: list[bytes]) -> None:
    async def main() -> None:
        async with serving() as client:
            for line in sent:
                await client.send_raw(line + b"\n")
            last: dict[str, Any] = {"id": "last", "method": "no/such", "params": {}}
            await client.send(last)
            await client.wait_for(lambda: [m for m in client.seen if m.get("id") == "last"])

    trio.run(main)
