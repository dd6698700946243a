"""The contract between the adapter and an app-server, by the schema that the program generates.

It is stricter than the schema in one respect: the adapter may not send a field that the program
does not know, because the program would silently ignore the field.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
import msgspec
import trio

from sessionmgr.testing.player import RecordedLine

Schema = dict[str, Any]
Message = dict[str, Any]


_MADE: Final[dict[Path, ProtocolContract]] = {}


async def contract_of(program: Path) -> ProtocolContract:
    """Return a program's contract; the program generates it once."""
    await trio.lowlevel.checkpoint()
    if program not in _MADE:
        with tempfile.TemporaryDirectory() as directory:
            argv = [str(program), "app-server", "generate-json-schema", "--experimental"]
            env = {"HOME": directory, "CODEX_HOME": directory, "PATH": ""}
            await trio.run_process([*argv, "--out", directory], env=env, capture_stderr=True)
            _MADE[program] = ProtocolContract(Path(directory))
    return _MADE[program]


class ProtocolContract:
    """The schemas of one version, by direction and method."""

    def __init__(self, directory: Path) -> None:
        self._files: Final = {path.stem: path.read_bytes() for path in directory.rglob("*.json")}
        self._ours: Final = self._methods("ClientRequest")
        self._theirs: Final = self._methods("ServerRequest")
        self._notices: Final = {
            ">": self._methods("ClientNotification"),
            "<": self._methods("ServerNotification"),
        }
        self._validators: Final[dict[str, jsonschema_rs.Validator]] = {}

    def faults(self, entries: Sequence[RecordedLine]) -> list[str]:
        """Return the violations in the traffic, by the adapter or by the program."""
        asked: dict[tuple[str, object], str] = {}
        faults: list[str] = []
        was_struck = any(_is_signal(each) for each in entries)
        for entry in entries:
            is_cut = was_struck and entry.dir == "<" and entry.note == "without a newline"
            if entry.dir not in "<>" or is_cut:  # a killed process may leave half a line
                continue
            if isinstance(entry.msg, dict):
                faults += self._judge(entry.dir, entry.msg, asked)
            else:
                faults.append(f"{entry.dir} no message: {entry.line or entry.msg}")
        return faults

    def _judge(
        self, direction: str, message: Message, asked: dict[tuple[str, object], str]
    ) -> list[str]:
        method = message.get("method")
        other = "<" if direction == ">" else ">"
        if method is None:
            answered = asked.pop((other, message.get("id")), None)
            if answered is None:
                return [f"{direction} an answer to nothing: {message}"]
            return self._answer(direction, answered, message)
        known = self._notices[direction]
        if "id" in message:
            asked[direction, message["id"]] = str(method)
            known = self._ours if direction == ">" else self._theirs
        if method not in known:
            return [f"{direction} {method}: unknown method"]
        return [
            *self._valid(f"{direction} {method}", known[method], message),
            *self._unknown(f"{direction} {method}", known[method], message),
        ]

    def _answer(self, direction: str, method: str, message: Message) -> list[str]:
        if "error" in message:
            return self._valid(f"{direction} {method}: error", self._read("JSONRPCError"), message)
        asked = self._ours if direction == "<" else self._theirs
        if method not in asked:
            return []  # the request was already reported
        name = _parameters(asked[method]).removesuffix("Params") + "Response"
        if name not in self._files:
            return [f"{direction} {method}: no schema of {name}"]
        where = f"{direction} {method}: result"
        return self._valid(where, self._read(name), message["result"])

    def _unknown(self, where: str, schema: Schema, message: Message) -> list[str]:
        """Return the fields of the adapter's messages that the program does not know."""
        if not where.startswith(">") or "params" not in message:
            return []
        known = schema["definitions"].get(_parameters(schema), {}).get("properties", {})
        return [f"{where}: no field {each}" for each in message["params"] if each not in known]

    def _valid(self, where: str, schema: Schema, message: object) -> list[str]:
        validator = self._validators.get(where)
        if validator is None:
            validator = self._validators[where] = jsonschema_rs.validator_for(schema)
        return [
            f"{where}: {'/'.join(map(str, each.instance_path))}: {each.message[:300]}"
            for each in validator.iter_errors(message)
        ]

    def _methods(self, name: str) -> dict[str, Schema]:
        whole = self._read(name)
        shared: Schema = {key: whole[key] for key in ("$schema", "definitions") if key in whole}
        shared.setdefault("definitions", {})
        return {
            each["properties"]["method"]["enum"][0]: {**shared, **each} for each in whole["oneOf"]
        }

    def _read(self, name: str) -> Schema:
        schema: Schema = msgspec.json.decode(self._files[name])
        return schema


def _is_signal(entry: RecordedLine) -> bool:
    return entry.dir == "#" and isinstance(entry.msg, dict) and bool(entry.msg.get("signal"))


def _parameters(schema: Schema) -> str:
    """Return the name of the parameters of a method."""
    reference: str = schema["properties"].get("params", {}).get("$ref", "")
    return reference.rpartition("/")[2]


def said_in(directory: Path) -> list[tuple[str, tuple[RecordedLine, ...]]]:
    """Return the recorded traffic of each app-server in a directory.

    A thread writes it, so the end may be missing while an app-server runs.
    """
    found: list[tuple[str, tuple[RecordedLine, ...]]] = []
    for path in sorted(directory.glob("*.jsonl")):
        whole = path.read_bytes().rpartition(b"\n")[0]  # the last line may be incomplete
        entries = tuple(msgspec.json.Decoder(RecordedLine).decode_lines(whole))
        about = entries[0].msg if entries else None
        if isinstance(about, dict) and "app-server" in str(about.get("argv")):
            found.append((path.name, entries))
    return found
