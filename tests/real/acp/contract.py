"""The contract between a client and an agent, by the schemas of the protocol's own library.

It is stricter than the schemas in one respect: our side may not send a field that the protocol does
not know, because the other side would silently ignore it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Final, Literal, TypeAlias, cast

import jsonschema_rs
import msgspec

from tests.real.agent_programs import ACP_SDK, program_of

Schema: TypeAlias = dict[str, Any]
Message: TypeAlias = dict[str, Any]
Side: TypeAlias = Literal["client", "agent"]
Stability: TypeAlias = Literal["stable", "unstable"]

_PACKAGE: Final = "node_modules/@agentclientprotocol/sdk"
_KINDS: Final = ("Request", "Response", "Notification")


@cache
def contract_of(
    version: int, stability: Stability = "stable", ours: Side = "client"
) -> AcpContract:
    """Return the contract of a version; without the library, skip the test or fail in CI.

    `ours` is the side that may send no unknown fields.
    """
    library = program_of("acp-sdk", ACP_SDK).parents[1] / _PACKAGE
    name = "schema.json" if stability == "stable" else "schema.unstable.json"
    file = library / "schema" / f"v{version}" / name
    return AcpContract(msgspec.json.decode(file.read_bytes()), ours)


class AcpContract:
    """The schemas of one version of the protocol, by receiver, method and kind of message."""

    def __init__(self, schema: Schema, ours: Side = "client") -> None:
        self._ours: Final = ours
        self._definitions: Final[Schema] = schema["$defs"]
        self._names: Final = {
            (side, each["x-method"], kind): name
            for name, each in self._definitions.items()
            for kind in _KINDS
            if "x-method" in each and name.endswith(kind)
            for side in _receivers(each["x-side"])
        }
        self._validators: Final[dict[str, jsonschema_rs.Validator]] = {}

    def faults(self, traffic: Iterable[tuple[Side, Message]]) -> list[str]:
        """Return the violations in a connection's messages, each with its sender."""
        asked: dict[tuple[Side, object], str] = {}
        faults: list[str] = []
        for sender, message in traffic:
            faults += self._judge(sender, message, asked)
        return faults

    def _judge(
        self, sender: Side, message: Message, asked: dict[tuple[Side, object], str]
    ) -> list[str]:
        other: Side = "agent" if sender == "client" else "client"
        where = f"{sender}: {message.get('method', 'answer')}"
        if message.get("jsonrpc") != "2.0":
            return [f"{where}: jsonrpc is {message.get('jsonrpc')!r}"]
        method = message.get("method")
        if method is None:
            return self._judge_answer(sender, message, asked.pop((other, message.get("id")), None))
        if "id" in message:
            asked[sender, message["id"]] = method
        if method.startswith("_"):
            return []  # an extension
        name = self._names.get((other, method, "Request" if "id" in message else "Notification"))
        if name is None:
            return [f"{where}: unknown method"]
        return self._faults(where, sender, name, message.get("params", {}))

    def _judge_answer(self, sender: Side, message: Message, method: str | None) -> list[str]:
        if method is None:
            return [f"{sender}: an answer to nothing: {message}"]
        if method.startswith("_"):
            return []
        if "error" in message:
            return self._faults(f"{sender}: error of {method}", sender, "Error", message["error"])
        name = self._names.get((sender, method, "Response"))
        if name is None:
            return []  # the request was already reported
        return self._faults(f"{sender}: answer to {method}", sender, name, message.get("result"))

    def _faults(self, where: str, sender: Side, name: str, content: Any) -> list[str]:
        validator = self._validators.get(name)
        if validator is None:
            schema = {"$ref": f"#/$defs/{name}", "$defs": self._definitions}
            validator = self._validators[name] = jsonschema_rs.validator_for(schema)
        faults = [
            f"{where}: {'/'.join(map(str, each.instance_path))}: {each.message[:300]}"
            for each in validator.iter_errors(content)
        ]
        known = self._fields(self._definitions[name])
        if sender == self._ours and known and isinstance(content, dict):
            sent = cast("Message", content)
            faults += [f"{where}: no field {each}" for each in sent if each not in known]
        return faults

    def _fields(self, schema: Schema) -> set[str]:
        """Return the fields of a schema, and of all its alternatives."""
        fields: set[str] = set(schema.get("properties", ()))
        for key in ("anyOf", "oneOf", "allOf"):
            for each in schema.get(key, ()):
                fields |= self._fields(each)
        name: str | None = schema.get("$ref")
        return (
            fields
            if name is None
            else fields | self._fields(self._definitions[name.rpartition("/")[2]])
        )


def _receivers(side: str) -> tuple[str, ...]:
    return ("client", "agent") if side == "protocol" else (side,)
