"""Recognizes files of other formats by their first bytes and names the conversion."""

from __future__ import annotations

import codecs
import json
import re
from typing import Final

HEAD: Final = 64 * 1024
"""Number of leading bytes that the check reads."""
FORMAT: Final = "a jobs file has one JSON object per line"
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_COMPRESSED: Final = {
    b"\x1f\x8b": "gunzip -c",
    b"BZh": "bunzip2 -c",
    b"\xfd7zXZ": "xz -dc",
    b"\x28\xb5\x2f\xfd": "zstd -dc",
}
_YAML: Final = re.compile(r"---|%YAML|- |-$|[\w-]+:(\s|$)")
_TOML: Final = re.compile(r"\[\[?[A-Za-z_][\w.-]*\]\]?\s*$|[\w-]+\s*=")
_CSV: Final = re.compile(r'[\w" ./-]+([,;\t][\w" ./-]*)+$')
_LOOKED_AT: Final = 3
"""Number of lines to check; at least one of them must look like a job."""


def foreign_format_error(head: bytes, name: str) -> str | None:
    """Return why a file with this beginning is not a jobs file; None if it may be one."""
    if head.startswith(_UTF16) or b"\0" in head:
        return _not_text(head, name)
    for magic, command in _COMPRESSED.items():
        if head.startswith(magic):
            return f"this file is compressed: use `{command} {name} | sessionmgr batch -`"
    text = head.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return None
    first = lines[0]
    if first.startswith("{"):
        return _pretty_printed(text, first, name)
    if first == "[" or first.startswith(("[{", "[ {", "[]")):
        return f"this is a JSON array; {FORMAT}: convert it with `jq -c '.[]' {name}`"
    if any(line.startswith("{") for line in lines[:_LOOKED_AT]):
        return None  # a single stray line, which the reader reports
    return _other_text(first, name)


def _not_text(head: bytes, name: str) -> str:
    little = head.startswith(codecs.BOM_UTF16_LE) or head[1:8:2].count(0) == len(head[1:8:2])
    if head.startswith(_UTF16) or little or head[:8:2].count(0) == len(head[:8:2]):
        command = f"iconv -f UTF-16 -t UTF-8 {name}"
        return f"this is UTF-16 text; a jobs file is UTF-8: convert it with `{command}`"
    return f"this is not a text file; {FORMAT}"


def _pretty_printed(text: str, first: str, name: str) -> str | None:
    """Return the message for a job that spans several lines, if the first one does."""
    try:
        found, end = json.JSONDecoder().raw_decode(text.lstrip())
        spans = isinstance(found, dict) and "\n" in text.lstrip()[:end]
    except (ValueError, RecursionError):
        spans = first == "{"
    if not spans:
        return None
    return f"a job spans several lines here; {FORMAT}: convert it with `jq -c . {name}`"


def _other_text(first: str, name: str) -> str:
    kind = ""
    if _TOML.match(first):
        kind = "looks like TOML"
    elif _YAML.match(first):
        return f"this looks like YAML; {FORMAT}: convert it with `yq -o=json -I=0 '.[]' {name}`"
    elif _CSV.match(first):
        kind = "looks like CSV"
    elif first.startswith("<"):
        kind = "looks like XML or HTML"
    if kind:
        return f"this {kind}; {FORMAT}"
    shown = first if len(first) <= 40 else f"{first[:39]}…"
    return f"expected a JSON object, got {shown!r}; {FORMAT}"
