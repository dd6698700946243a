"""A client on the protocol's library for Python (asyncio), version 1.

Arguments: the directory of the session, and the command of the agent. Prints one JSON object. It
runs in the library's own environment, without this package.
"""

import asyncio  # noqa: TID251  # the library is not on trio
import importlib
import json
import sys
from typing import Any

acp: Any = importlib.import_module("acp")


class PythonClient:
    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.asked: list[Any] = []

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.updates.append(update)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **kwargs: Any
    ) -> Any:
        self.asked.append(tool_call)
        (allow,) = [each for each in options if each.kind == "allow_once"]
        outcome = acp.schema.AllowedOutcome(outcome="selected", option_id=allow.option_id)
        return acp.schema.RequestPermissionResponse(outcome=outcome)


async def main(cwd: str, command: str, *args: str) -> None:
    client = PythonClient()
    async with acp.spawn_agent_process(client, command, *args) as (agent, process):
        initialized = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        session = await agent.new_session(cwd=cwd, mcp_servers=[])

        async def prompt(*steps: dict[str, Any]) -> Any:
            block = acp.text_block(json.dumps(steps))
            return await agent.prompt(session_id=session.session_id, prompt=[block])

        ended = await prompt(
            {"do": "say", "text": "Hello", "deltas": 2},
            {"do": "ask", "tool": "Bash", "input": {"command": "ls"}, "output": "a.py"},
        )
        await agent.set_session_mode(session_id=session.session_id, mode_id="plan")
        cancelling = asyncio.create_task(prompt({"do": "say", "text": "wait"}, {"do": "hang"}))
        while not any("wait" in str(each) for each in client.updates):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await agent.cancel(session_id=session.session_id)
        cancelled = await cancelling
        try:
            await prompt({"do": "fail", "message": "no luck", "kind": "auth_failed"})
            failure = None
        except acp.RequestError as error:
            failure = error.code
        await agent.close_session(session_id=session.session_id)
        before = len(client.updates)
        await agent.load_session(cwd=cwd, session_id=session.session_id, mcp_servers=[])
        replayed = client.updates[before:]
        listed = await agent.list_sessions()
    found: dict[str, Any] = {
        "version": initialized.protocol_version,
        "modes": [each.id for each in session.modes.available_modes],
        "stops": [ended.stop_reason, cancelled.stop_reason],
        "failure": failure,
        "asked": len(client.asked),
        "kinds": [each.session_update for each in client.updates],
        "replayed": [each.session_update for each in replayed],
        "sessions": [each.session_id == session.session_id for each in listed.sessions],
        "code": process.returncode,
    }
    print(json.dumps(found))


asyncio.run(main(*sys.argv[1:]))
