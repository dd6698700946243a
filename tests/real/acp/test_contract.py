"""The contract detects invalid traffic."""

from typing import Any

from tests.real.acp.contract import Message, Side, contract_of

HERE: dict[str, Any] = {"cwd": "/work", "mcpServers": []}


def request(method: str, **params: Any) -> Message:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def answer(**fields: Any) -> Message:
    return {"jsonrpc": "2.0", "id": 1, **fields}


def faults(*traffic: tuple[Side, Message], version: int = 1) -> list[str]:
    return contract_of(version).faults(traffic)


def test_valid_traffic_has_no_faults() -> None:
    chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"}}
    update = request("session/update", sessionId="s", update=chunk)
    del update["id"]
    assert (
        faults(
            ("client", request("session/new", **HERE)),
            ("agent", update),
            ("agent", answer(result={"sessionId": "s"})),
            ("client", request("session/prompt", sessionId="s", prompt=[])),
            ("agent", answer(error={"code": -32603, "message": "broken"})),
            ("agent", {"jsonrpc": "2.0", "method": "_agent/of_its_own", "params": {"x": 1}}),
        )
        == []
    )


def test_a_missing_field_is_a_fault_of_its_sender() -> None:
    [fault] = faults(("client", request("session/new", cwd="/work")))
    assert fault.startswith("client: session/new: ")
    assert "mcpServers" in fault
    [fault] = faults(
        ("client", request("session/new", **HERE)), ("agent", answer(result={"id": "s"}))
    )
    assert fault.startswith("agent: answer to session/new: ")


def test_a_field_that_is_not_in_the_protocol_is_a_fault_of_our_side_alone() -> None:
    ours: tuple[Side, Message] = ("client", request("session/new", **HERE, colour="red"))
    assert faults(ours) == ["client: session/new: no field colour"]
    theirs = answer(result={"sessionId": "s", "colour": "red"})
    assert faults(("client", request("session/new", **HERE)), ("agent", theirs)) == []
    assert contract_of(1, ours="agent").faults(
        [("client", request("session/new", **HERE)), ("agent", theirs)]
    ) == ["agent: answer to session/new: no field colour"]


def test_a_method_of_the_other_side_or_version_is_a_fault() -> None:
    assert faults(("agent", request("session/new", **HERE))) == [
        "agent: session/new: unknown method"
    ]
    loaded: tuple[Side, Message] = ("client", request("session/load", sessionId="s", **HERE))
    assert faults(loaded) == []
    assert faults(loaded, version=2) == ["client: session/load: unknown method"]


def test_an_answer_to_nothing_and_a_message_without_its_version_are_faults() -> None:
    [fault] = faults(("agent", answer(result={})))
    assert fault.startswith("agent: an answer to nothing")
    assert faults(("client", {"method": "session/cancel", "params": {"sessionId": "s"}})) == [
        "client: session/cancel: jsonrpc is None"
    ]
