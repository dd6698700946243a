"""Error texts keep the names of files and lose their directories."""

from __future__ import annotations

import pytest

from sessionmgr.model import Failure, FailureKind
from sessionmgr_adapters.codex.failures import failure_of, strip_directories, without_directories


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("bad /home/joe/.codex/auth.json, really", "bad auth.json, really"),
        ("/home/joe/.codex/config.toml:3:4: no", "config.toml:3:4: no"),
        ('CODEX_HOME is "/home/joe doe/my codex"', 'CODEX_HOME is "my codex"'),
        ("see ~/.codex/log/a.log (file:///home/joe/b.log)", "see a.log (b.log)"),
        ("see https://a.b:80/c/d.html or http://[::1]/v1/x", None),
        ("thread/start and/or 5/6, try /compact", None),
        ("../relative/file and a/b/c", None),
    ],
)
def test_files_have_their_names_alone(text: str, shown: str | None) -> None:
    assert strip_directories(text) == (shown or text)


def test_failures_say_nothing_of_places() -> None:
    said = "bad /home/joe/.codex/auth.json"
    assert failure_of("other", said).message == "bad auth.json"
    failure = Failure(kind=FailureKind.PROCESS_EXITED, message=said, stderr_tail=said)
    told = without_directories(failure)
    assert (told.message, told.stderr_tail) == ("bad auth.json", "bad auth.json")
