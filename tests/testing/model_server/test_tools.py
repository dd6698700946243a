from collections.abc import Mapping

import pytest

from sessionmgr.model import Json
from sessionmgr.testing.model_server import ToolOffer
from sessionmgr.testing.model_server.sample_value import sample_value
from sessionmgr.testing.model_server.tools import choose_tool


def offer(name: str, *fields: str, **more: Json) -> ToolOffer:
    properties: dict[str, Json] = {each: {"type": "string"} for each in fields}
    for each, kind in more.items():
        properties[each] = {"type": kind}
    return ToolOffer(name, {"properties": properties, "required": list(properties)})


def test_a_tool_is_found_by_what_it_is_for_and_its_fields_are_called_as_there() -> None:
    bash = offer("Bash", "command", limit="integer")
    chosen = choose_tool("shell", {"command": "ls"}, [offer("Read", "file_path"), bash])
    assert (chosen.name, chosen.input) == ("Bash", {"command": "ls", "limit": 0})
    chosen = choose_tool("shell", {"command": "ls"}, [offer("exec_command", "cmd")])
    assert (chosen.name, chosen.input) == ("exec_command", {"cmd": "ls"})


def test_a_tool_that_is_called_by_its_name_gets_what_it_is_given() -> None:
    chosen = choose_tool("Bash", {"cmd": 1}, [offer("Bash", "command")])
    assert (chosen.name, chosen.input, chosen.text) == ("Bash", {"cmd": 1}, None)
    assert choose_tool("patch", {"text": "x"}, [ToolOffer("patch")]).text == "x"


def test_a_tool_that_nobody_offers_is_called_all_the_same() -> None:
    assert choose_tool("mcp__a__b", {"x": 1}, []).name == "mcp__a__b"
    assert choose_tool("shell", {"command": "ls"}, []).name == "shell"
    assert choose_tool("edit", {"path": "a"}, []).name == "edit"


def test_who_cannot_read_or_write_is_told_to_in_another_way() -> None:
    shell = offer("exec_command", "cmd")
    read = choose_tool("read", {"path": "a b"}, [shell])
    assert (read.name, read.input) == ("exec_command", {"cmd": "cat 'a b'"})
    write = choose_tool("write", {"path": "a", "content": "it's"}, [shell])
    assert write.input == {"cmd": """printf %s 'it'"'"'s' > a"""}
    patch = choose_tool(
        "write", {"path": "a", "content": "1\n2\n"}, [shell, ToolOffer("apply_patch")]
    )
    assert patch.text == "*** Begin Patch\n*** Add File: a\n+1\n+2\n*** End Patch"
    patch = choose_tool("edit", {"path": "a", "old": "1", "new": "2"}, [ToolOffer("apply_patch")])
    assert patch.text == "*** Begin Patch\n*** Update File: a\n@@\n-1\n+2\n*** End Patch"
    program = choose_tool("shell", {"command": "ls"}, [ToolOffer("exec")])
    assert program.text == 'text(await tools.exec_command({"cmd": "ls"}))'


@pytest.mark.parametrize(
    ("tool", "given", "offered", "expected"),
    [
        ("write", {"path": "a", "content": "b"}, offer("write", "filePath", "content"), None),
        (
            "edit",
            {"path": "a", "old": "b", "new": "c"},
            offer("edit", "path", "before", "after"),
            None,
        ),
        ("shell", {"command": "ls"}, offer("developer__shell", "command"), None),
        ("agent", {"prompt": "a"}, offer("delegate", "instructions"), None),
        (
            "agent",
            {"prompt": "a"},
            offer("invoke_agent", "agent_name", "prompt"),
            {"agent_name": "generalist", "prompt": "a"},
        ),
        (
            "edit",
            {"path": "a", "old": "b", "new": "c"},
            offer("StrReplaceFile", "path", edit="object"),
            {"path": "a", "edit": {"old": "b", "new": "c"}},
        ),
    ],
)
def test_a_tool_of_each_agent_is_found(
    tool: str, given: Mapping[str, Json], offered: ToolOffer, expected: Json
) -> None:
    chosen = choose_tool(tool, given, [offer("other"), offered])
    assert chosen.name == offered.name
    assert offered.schema is not None
    properties = offered.schema["properties"]
    assert isinstance(properties, dict)
    named = dict(zip(properties, given.values(), strict=False)) if expected is None else expected
    assert chosen.input == named


SCHEMAS: list[tuple[Mapping[str, Json] | bool, Json]] = [
    (True, None),
    ({}, None),
    ({"const": 7}, 7),
    ({"default": "d", "type": "string"}, "d"),
    ({"enum": ["a", "b"]}, "a"),
    ({"type": "string"}, "sample"),
    ({"type": "string", "minLength": 8}, "samplexx"),
    ({"type": "string", "maxLength": 2}, "sa"),
    ({"type": "string", "format": "date"}, "2000-01-01"),
    ({"type": "integer", "minimum": 3}, 3),
    ({"type": "integer", "exclusiveMinimum": 3}, 4),
    ({"type": "number", "maximum": -1}, -1),
    ({"type": "number", "exclusiveMaximum": 0}, -1),
    ({"type": "boolean"}, False),
    ({"type": "null"}, None),
    ({"type": "BOOLEAN"}, False),
    ({"type": ["null", "boolean"]}, False),
    ({"type": "array", "items": {"type": "boolean"}}, []),
    ({"type": "array", "items": {"type": "boolean"}, "minItems": 2}, [False, False]),
    ({"anyOf": [{"type": "null"}, {"type": "boolean"}]}, False),
    ({"oneOf": [{"type": "null"}]}, None),
    (
        {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {}}, "required": ["a"]},
        {"a": False},
    ),
    ({"properties": {"a": {}}}, {}),
    (
        {
            "allOf": [
                {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]},
                {"type": "object", "properties": {"b": {"const": 2}}, "required": ["b"]},
            ]
        },
        {"a": 1, "b": 2},
    ),
    ({"allOf": [{"type": "boolean"}]}, False),
    ({"$ref": "#/$defs/x~1y", "$defs": {"x/y": {"const": 9}}}, 9),
]


@pytest.mark.parametrize(("schema", "value"), SCHEMAS)
def test_a_sample_is_valid_against_its_schema(
    schema: Mapping[str, Json] | bool, value: Json
) -> None:
    assert sample_value(schema) == value


def test_a_schema_that_holds_itself_has_a_sample_as_well() -> None:
    schema: Mapping[str, Json] = {
        "type": "object",
        "properties": {"next": {"$ref": "#"}},
        "required": ["next"],
    }
    assert isinstance(sample_value(schema), dict)
