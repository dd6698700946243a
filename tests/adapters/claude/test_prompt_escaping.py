"""Interpretation of prompts that are not marked as literal."""

from __future__ import annotations

import pytest

from sessionmgr_adapters.claude.outgoing import prompt_syntax_failure, special_meaning


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("hi", None),
        ("and/or", None),
        ("me@example.org, `@decorated`, (@here), x:@y and @@z or @ 5", None),
        ("/clear", "command"),
        ("  /clear", "command"),
        ("@a.txt", "'@a.txt'"),
        ("look at\n@dir/a.txt please", "'@dir/a.txt'"),
        ('all of @"a b.txt"', "'@\"a b.txt\"'"),
        ("\u3001@a.txt", "'@a.txt'"),
        ("\u00a0@a.txt", "'@a.txt'"),
    ],
)
def test_commands_and_files_are_seen(text: str, what: str | None) -> None:
    found = special_meaning(text)
    assert found is None if what is None else what in str(found)


def test_only_who_can_be_told_is_given_such_a_text() -> None:
    for text in ("/clear", "@a.txt"):
        assert prompt_syntax_failure(text, "2.1.248") is None
        assert prompt_syntax_failure(text, "2.1.327 (Claude Code)") is None
        for version in ("2.1.247", "2.1.197", None):
            failure = prompt_syntax_failure(text, version)
            assert failure is not None
            assert "slash_commands" in failure.message
