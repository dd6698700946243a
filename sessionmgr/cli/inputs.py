"""Arguments and the files that they name: prompts, variables, options."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from sessionmgr.adapter.kit import LARGEST_TEXT, FileRefusedError, read_bounded_text
from sessionmgr.cli.errors import CommandLineInvalid
from sessionmgr.model import UnreadableJson, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessionmgr.model import Json

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_text_file(flag: str, path: str) -> str:
    """Read a file that a flag names.

    Raises:
        CommandLineInvalid: It is unreadable, too large, or not UTF-8.
    """
    try:
        return read_bounded_text(Path(path), regular=False)  # the path may be a pipe: <(command)
    except FileRefusedError as error:
        raise CommandLineInvalid(f"{flag}: {error}") from None


def directory_argument(text: str) -> str:
    """Validate the path of a directory, which may be missing: it is created later."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"expected a directory, got {text!r}")
    return text


def read_prompt(given: str | None, path: str | None, stdin: TextIO | None) -> str:
    """Return the prompt from the argument, from stdin (`-`) or from a file.

    Raises:
        CommandLineInvalid: There is no prompt, or there are two.
    """
    if given is not None and path is not None:
        raise CommandLineInvalid("PROMPT and --prompt-file: give only one of them")
    if path is not None:
        prompt, where = read_text_file("--prompt-file", path), path
    elif given == "-":
        prompt, where = _read_all(stdin), "stdin"
    elif given is not None:
        prompt, where = given, "PROMPT"
    else:
        raise CommandLineInvalid(
            "run: PROMPT is missing: give a text, - to read stdin, or --prompt-file FILE"
        )
    if not prompt.strip():
        raise CommandLineInvalid(f"{where} is empty; write what the agent should do")
    return require_utf8(where, prompt)


def require_utf8(where: str, text: str) -> str:
    """Return a text if it is valid UTF-8.

    Raises:
        CommandLineInvalid: It is not; encoding it would change it.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise CommandLineInvalid(f"{where} is not UTF-8 text") from None
    return text


def _read_all(stdin: TextIO | None) -> str:
    if stdin is None:
        raise CommandLineInvalid("PROMPT: - reads stdin, which is closed")
    data = stdin.buffer.read(LARGEST_TEXT + 1)
    if len(data) > LARGEST_TEXT:
        raise CommandLineInvalid(f"stdin is larger than {LARGEST_TEXT // 1024 // 1024} MiB")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise CommandLineInvalid("stdin is not UTF-8 text") from None


def read_env(pairs: Iterable[str], path: str | None) -> dict[str, str]:
    """Return the variables of a file, overridden by those of flags.

    Raises:
        CommandLineInvalid: One of them is not `K=V`; the error says where.
    """
    found: dict[str, str] = {}
    if path is not None:
        for number, line in enumerate(read_text_file("--env-file", path).splitlines(), 1):
            said = line.strip().removeprefix("export ").strip()
            if said and not said.startswith("#"):
                name, value = _parse_pair(f"{path}:{number}", said)
                found[name] = _unquote(value)
    for pair in pairs:
        name, value = _parse_pair("--env", pair)
        found[name] = require_utf8(f"--env: {name}", value)
    return found


def _parse_pair(where: str, said: str) -> tuple[str, str]:
    name, equals, value = said.partition("=")
    if not equals or not _NAME.fullmatch(name):
        # The message must not quote the line: the value may be a secret, and a line without `=` may
        # consist of nothing else.
        raise CommandLineInvalid(f"{where}: expected NAME=VALUE")
    return name, value


def _unquote(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if quoted else value


def read_options(flag: str, pairs: Iterable[str]) -> dict[str, Json]:
    """Return named values; a value that is valid JSON is parsed, any other is text.

    Raises:
        CommandLineInvalid: One of them is not `K=V`.
    """
    found: dict[str, Json] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise CommandLineInvalid(f"{flag}: expected NAME=VALUE, got {pair!r}")
        value = parse_json(text.encode(errors="surrogateescape"))
        found[name] = text if isinstance(value, UnreadableJson) else value
    return found


def read_schema(path: str) -> dict[str, Json]:
    """Return a JSON Schema from a file.

    Raises:
        CommandLineInvalid: The file contains no JSON Schema.
    """
    found = parse_json(read_text_file("--schema", path).encode())
    if isinstance(found, UnreadableJson):
        raise CommandLineInvalid(f"--schema: {path} is not valid JSON: {found.why}")
    if not isinstance(found, dict):
        raise CommandLineInvalid(f"--schema: {path} contains no JSON object; a JSON Schema is one")
    return found
