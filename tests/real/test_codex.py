"""Codex with a scripted model, over its pipes alone."""

import msgspec
import pytest

from sessionmgr.testing.model_server import (
    ModelCall,
    ModelCut,
    ModelFault,
    ModelLimits,
    ModelRefuse,
    ModelReply,
    ModelSay,
    ModelScript,
    ModelServer,
    ModelStop,
    ModelThink,
    ModelUsageLimit,
    prompt_with,
)
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from tests.real.agent_process import AgentProgram, Line, LineConversation

FREE = "--dangerously-bypass-approvals-and-sandbox"
EXEC = ("exec", "--json", "--skip-git-repo-check", FREE)


def items(lines: list[Line], kind: str) -> list[Line]:
    return [
        line["item"]
        for line in lines
        if line["type"] == "item.completed" and line["item"]["type"] == kind
    ]


async def test_a_prompt_is_answered_and_a_tool_runs(
    codex: AgentProgram, server: ModelServer
) -> None:
    script: ModelScript = [
        [
            ModelThink(text="I look."),
            ModelSay(text="Let me look.", deltas=3),
            ModelCall(tool="shell", input={"command": "echo it is $((40 + 2))"}),
        ],
        [ModelSay(text="It is done.")],
    ]
    done = await codex.run(*EXEC, prompt_with(script, "Look."))
    assert done.code == 0
    texts = [each["text"] for each in items(done.lines, "agent_message")]
    assert texts == ["Let me look.", "It is done."]
    assert items(done.lines, "reasoning")[0]["text"] == "I look."
    assert items(done.lines, "command_execution")[0]["aggregated_output"] == "it is 42\n"
    assert [each.reply for each in server.log] == [0, 1]
    assert "it is 42" in server.log.asked[1].results[0].text


async def test_a_file_is_written_and_read(codex: AgentProgram, server: ModelServer) -> None:
    script: ModelScript = [
        [ModelCall(tool="write", input={"path": "note.txt", "content": "one\n"})],
        [ModelCall(tool="edit", input={"path": "note.txt", "old": "one", "new": "two"})],
        [ModelCall(tool="read", input={"path": "note.txt"})],
        [ModelSay(text="Read.")],
    ]
    done = await codex.run(*EXEC, prompt_with(script))
    assert done.code == 0
    assert (codex.work / "note.txt").read_text() == "two\n"
    assert "two" in server.log.asked[-1].results[0].text


@pytest.mark.parametrize("model", ["gpt-6.1-sol", "a-model-of-nobody"])
async def test_a_model_with_other_tools_is_served_as_well(
    codex: AgentProgram, server: ModelServer, hermitage: IsolatedEnvironment, model: str
) -> None:
    hermitage.codex(model=model)
    script: ModelScript = [
        [ModelCall(tool="write", input={"path": "note.txt", "content": "one\n"})],
        [ModelCall(tool="read", input={"path": "note.txt"})],
        [ModelSay(text="Read.")],
    ]
    done = await codex.run(*EXEC, prompt_with(script))
    assert done.code == 0
    assert (codex.work / "note.txt").read_text() == "one\n"
    assert "one" in server.log.asked[-1].results[0].text


async def test_a_cut_stream_is_asked_for_again(
    codex: AgentProgram, server: ModelServer, hermitage: IsolatedEnvironment
) -> None:
    hermitage.codex(retries=1)
    script: ModelScript = [
        [ModelSay(text="Half", whole=False), ModelCut(times=1), ModelSay(text="Whole.")]
    ]
    done = await codex.run(*EXEC, prompt_with(script))
    assert done.code == 0
    assert items(done.lines, "agent_message")[-1]["text"] == "Whole."
    assert [each.ending for each in server.log] == ["cut", "whole"]


@pytest.mark.parametrize(
    "failing",
    [
        ModelRefuse(status=429, message="too many"),
        ModelRefuse(status=500, message="too many"),
        ModelFault(kind="invalid_prompt", message="too many"),
        ModelUsageLimit(resets_at=1_900_000_000, message="too many"),
    ],
    ids=["429", "500", "fault", "usage"],
)
async def test_a_failure_ends_the_turn(
    codex: AgentProgram, server: ModelServer, failing: ModelRefuse | ModelFault | ModelUsageLimit
) -> None:
    done = await codex.run(*EXEC, prompt_with([[failing]]))
    assert done.code == 1
    [failed] = done.of_type("turn.failed")
    assert failed["error"]["message"]
    assert len(server.log) == 1


async def test_output_by_a_schema_is_made_from_the_schema(
    codex: AgentProgram, server: ModelServer
) -> None:
    schema = {
        "type": "object",
        "properties": {"answer": {"type": "integer", "minimum": 3}, "why": {"type": "string"}},
        "required": ["answer", "why"],
        "additionalProperties": False,
    }
    file = codex.work / "schema.json"
    file.write_bytes(msgspec.json.encode(schema))
    done = await codex.run(*EXEC, "--output-schema", str(file), "How many?")
    [text] = [each["text"] for each in items(done.lines, "agent_message")]
    assert msgspec.json.decode(text) == {"answer": 3, "why": "sample"}
    assert server.log.asked[0].schema == schema


async def test_a_thread_is_resumed_by_another_process(
    codex: AgentProgram, server: ModelServer
) -> None:
    first = await codex.run(*EXEC, prompt_with([[ModelSay(text="one")], [ModelSay(text="two")]]))
    thread = first.of_type("thread.started")[0]["thread_id"]
    flags = ("exec", "resume", "--json", "--skip-git-repo-check", FREE, thread)
    second = await codex.run(*flags, "And?")
    assert [each["text"] for each in items(second.lines, "agent_message")] == ["two"]
    assert {each.session for each in server.log.asked} == {thread}


def _is_end(line: Line) -> bool:
    return line.get("method") == "turn/completed"


class AppServerClient:
    """A client of `codex app-server` that sends one request after the other."""

    def __init__(self, talk: LineConversation) -> None:
        self._talk = talk
        self._asked = 0

    async def ask(self, method: str, params: Line) -> Line:
        self._asked += 1
        number = self._asked
        await self._talk.say({"id": number, "method": method, "params": params})
        answer = await self._talk.until(lambda line: line.get("id") == number)
        assert "result" in answer, answer
        result: Line = answer["result"]
        return result

    async def open(self, codex: AgentProgram) -> str:
        """Start a thread, and return its id."""
        info = {"name": "test", "version": "1"}
        await self.ask("initialize", {"clientInfo": info})
        await self._talk.say({"method": "initialized"})
        params = {"cwd": str(codex.work), "approvalPolicy": "never", "sandbox": "read-only"}
        started = await self.ask("thread/start", params)
        return str(started["thread"]["id"])

    async def turn(self, thread: str, prompt: str) -> Line:
        """Run a turn, and return its end."""
        inputs = [{"type": "text", "text": prompt}]
        return await self.to_its_end("turn/start", {"threadId": thread, "input": inputs})

    async def to_its_end(self, method: str, params: Line) -> Line:
        """Send a request that runs in a turn, and return its end, which may precede the answer."""
        before = len(self._talk.heard)
        await self.ask(method, params)
        ends = [line for line in self._talk.heard[before:] if _is_end(line)]
        end = ends[0] if ends else await self._talk.until(_is_end)
        turn: Line = end["params"]["turn"]
        return turn

    def texts(self) -> list[str]:
        """Return the model's texts so far."""
        found = [
            line["params"]["item"]
            for line in self._talk.heard
            if line.get("method") == "item/completed"
        ]
        return [each["text"] for each in found if each["type"] == "agentMessage"]


async def test_the_app_server_takes_turns(codex: AgentProgram, server: ModelServer) -> None:
    async with codex.open("app-server") as talk:
        client = AppServerClient(talk)
        thread = await client.open(codex)
        limits = ModelLimits(used=0.5, resets_at=1_900_000_000)
        script: ModelScript = [[limits, ModelSay(text="Half of it.", deltas=4)]]
        assert (await client.turn(thread, prompt_with(script)))["status"] == "completed"
        assert (await client.turn(thread, "And now?"))["status"] == "completed"
        assert client.texts() == ["Half of it.", "You said: And now?"]
        told = [line for line in talk.heard if line.get("method") == "account/rateLimits/updated"]
        primary = told[0]["params"]["rateLimits"]["primary"]
        assert (primary["usedPercent"], primary["resetsAt"]) == (50, 1_900_000_000)
        deltas = [line for line in talk.heard if line.get("method") == "item/agentMessage/delta"]
        assert len(deltas) >= 4
        assert await talk.close() == 0
    assert [each.reply for each in server.log] == [0, 1]


async def test_a_script_goes_on_after_a_compaction(
    codex: AgentProgram, server: ModelServer
) -> None:
    call = ModelCall(tool="shell", input={"command": "echo one"})
    script: ModelScript = [[call], [ModelSay(text="first")], [ModelSay(text="second")]]
    async with codex.open("app-server") as talk:
        client = AppServerClient(talk)
        thread = await client.open(codex)
        await client.turn(thread, prompt_with(script))
        await client.to_its_end("thread/compact/start", {"threadId": thread})
        await client.turn(thread, "Go on.")
        assert client.texts() == ["first", "second"]
        assert await talk.close() == 0
    assert [each.purpose for each in server.log.asked] == ["turn", "turn", "compaction", "turn"]


async def test_a_turn_that_is_cut_short_says_so(codex: AgentProgram, server: ModelServer) -> None:
    async with codex.open("app-server") as talk:
        client = AppServerClient(talk)
        thread = await client.open(codex)
        reply: ModelReply = [ModelSay(text="So long"), ModelStop(reason="max_tokens")]
        turn = await client.turn(thread, prompt_with([reply]))
        assert turn["status"] == "failed"
        assert await talk.close() == 0
