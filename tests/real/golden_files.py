"""Golden files: traffic of real agents, recorded here and normalized for all machines.

`pytest tests/real --record` writes them to tests/golden/AGENT/VERSION/NAME.jsonl; the first line
names the agent. Directories, ports, ids and times differ between runs, so they are replaced by
constants. An agent's descriptions of itself and of its commands belong to its makers and are left
out, as are its instructions to its model.
"""

import re
from pathlib import Path

import msgspec

from sessionmgr.model import Json, encode_json

GOLDEN = Path(__file__).parents[1] / "golden"

_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TIME = re.compile(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_PORT = re.compile(r"127\.0\.0\.1:\d+")
_PROCESS = re.compile(r"\b\d+\.sock\b|\"pid\":\d+")
_HOST = re.compile(r'"serverName":"[^"]*"')
_LONG = 120  # texts of our scripts are shorter
_MAKERS = ("commands", "agents", "models", "output_styles", "available_output_styles", "account")


def write_golden(agent: str, version: str, name: str, recorded: Path, root: Path) -> None:
    """Write a golden file from a recording."""
    entries: list[dict[str, Json]] = [
        msgspec.json.decode(line) for line in recorded.read_bytes().splitlines()
    ]
    lines: list[Json] = [{"t": 0.0, "dir": "#", "msg": {"agent": agent, "version": version}}]
    lines += [_without_makers(entry) for entry in entries if entry["dir"] != "#"]
    text = "".join(encode_json(line).decode() + "\n" for line in lines)
    target = GOLDEN / agent / version / f"{name}.jsonl"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(_the_same_everywhere(text, root), encoding="utf-8")


def _without_makers(entry: dict[str, Json]) -> Json:
    match entry:
        case {"msg": {"type": "control_response", "response": {"response": dict(answer)}}}:
            for each in _MAKERS:
                if each in answer:
                    answer[each] = [] if isinstance(answer[each], list) else {}
        case {"dir": "<", "msg": dict(told)} if told.get("type") == "user":
            is_synthetic = told.get("isSynthetic") is True
            for each in ("message", "tool_use_result"):
                if each in told:
                    told[each] = _without_words(told[each], is_synthetic=is_synthetic)
        case _:
            pass
    return entry


def _without_words(found: Json, *, is_synthetic: bool = False) -> Json:
    """Remove a program's instructions to its model: long texts, and all synthetic ones."""
    match found:
        case dict():
            return {
                key: _without_words(value, is_synthetic=is_synthetic and key != "type")
                for key, value in found.items()
            }
        case list():
            return [_without_words(each, is_synthetic=is_synthetic) for each in found]
        case str() if " " in found and (is_synthetic or len(found) > _LONG):
            return found if found.startswith("<script>") else "(words of the program)"
        case _:
            return found


def _the_same_everywhere(text: str, root: Path) -> str:
    # A directory also occurs in names, with dashes instead of slashes.
    for place in {str(root), str(root.resolve())}:
        text = text.replace(place, "/hermitage")
        text = text.replace(re.sub(r"[^A-Za-z0-9]", "-", place), "-hermitage")
    known: dict[str, str] = {}

    def renamed(found: re.Match[str]) -> str:
        number = len(known) + 1
        return known.setdefault(found.group(), f"00000000-0000-4000-8000-{number:012d}")

    text = _UUID.sub(renamed, text)
    text = _TIME.sub("2026-01-01T00:00:00.000Z", text)
    text = _HOST.sub('"serverName":"host"', text)
    text = _PROCESS.sub(lambda found: re.sub(r"\d+", "1", found.group()), text)
    return _PORT.sub("127.0.0.1:1", text)
