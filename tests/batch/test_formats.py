"""Formats that other versions and programs read: names and columns stay what they are."""

import sqlite3
from pathlib import Path
from typing import Any, get_args

import msgspec

from sessionmgr.batch.host_messages import FromChild, ToChild
from sessionmgr.batch.ledger import Ledger
from sessionmgr.batch.results import JobResult, Summary
from sessionmgr.model import RunResult

TO_CHILD = {
    "open": "store adapters agents asks",
    "submit": "work",
    "cancel": "job attempt detail",
    "renew": "seconds",
    "answer": "question allow deny",
}
FROM_CHILD = {
    "ready": "",
    "broken": "why",
    "reported": "ended",
    "active": "job attempt activity",
    "alive": "",
    "ask": "question request",
}
RESULT = "job attempt side_effects"
SUMMARY = (
    "batch jobs statuses failures attempts tokens cost started_at ended_at duration attempts_now"
    " left stopped providers_stopped warnings denied_jobs denials undecided"
)
TABLES = {
    "note": "key value",
    "job": (
        "id line round chosen provider directory fingerprint digests body state attempts resume"
        " ended result"
    ),
    "attempt": "job number session run status failure provider_session usage usd provenance",
    "standing": "job begun state provider fingerprint digests body resume ended result",
    "former": "job attempts",
}


def fields(struct: type[msgspec.Struct]) -> str:
    return " ".join(each.encode_name for each in msgspec.structs.fields(struct))


def messages(union: Any) -> dict[str, str]:
    return {str(each.__struct_config__.tag): fields(each) for each in get_args(union)}


def test_messages_to_and_from_a_child_have_their_tags_and_fields() -> None:
    assert messages(ToChild) == TO_CHILD
    assert messages(FromChild) == FROM_CHILD
    assert {each.__struct_config__.tag_field for each in get_args(ToChild | FromChild)} == {"type"}


def test_results_and_summaries_have_their_fields() -> None:
    assert fields(JobResult) == f"{fields(RunResult)} {RESULT}"
    assert fields(Summary) == SUMMARY


def test_a_ledger_has_its_tables_and_columns(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Ledger(path).close()
    with sqlite3.connect(path) as found:
        names = found.execute("select name from sqlite_master where type = 'table'").fetchall()
        columns = {
            name: " ".join(row[1] for row in found.execute(f"pragma table_info({name})"))
            for (name,) in names
        }
    found.close()
    assert columns == TABLES
