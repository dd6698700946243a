"""The behaviours of queries: sessions and runs by id, by a prefix of an id, by their properties."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sessionmgr.store import AmbiguousId, IdTaken, NewSession, SnapshotRow, UnknownId
from sessionmgr.testing.store_conformance.behaviour import StoreBehaviourGroup
from sessionmgr.testing.store_conformance.sample_records import (
    OTHER,
    RUN,
    SESSION,
    batch,
    expect_refusal,
    new_session,
    put_snapshot,
)

if TYPE_CHECKING:
    from sessionmgr.store import Store

FINDING: Final = StoreBehaviourGroup()


@FINDING.of_one_store
async def a_session_comes_back_as_it_was_created(store: Store) -> None:
    await new_session(store, provider="echo", at=1234)
    session = await store.session(SESSION)
    assert (session.session_id, session.provider, session.created) == (SESSION, "echo", 1234)
    assert (session.state, session.closed, session.last_seq) == ("open", None, 0)
    assert session.body == b'{"cwd":"/"}'


@FINDING.of_one_store
async def creating_the_very_same_session_again_changes_nothing(store: Store) -> None:
    await new_session(store)
    await store.append(batch(1, "a"))
    await new_session(store)
    assert (await store.session(SESSION)).last_seq == 1


@FINDING.of_one_store
async def another_session_with_a_taken_id_is_refused(store: Store) -> None:
    await new_session(store)
    for provider, at, body in (
        ("else", 1000, b'{"cwd":"/"}'),
        ("echo", 1, b""),
        ("echo", 1000, b""),
    ):
        with expect_refusal(IdTaken):
            await store.create_session(
                NewSession(session_id=SESSION, provider=provider, at=at, body=body)
            )


@FINDING.of_one_store
async def what_is_not_there_is_unknown_by_name(store: Store) -> None:
    with expect_refusal(UnknownId) as caught:
        await store.session("ses_none")
    assert "ses_none" in str(caught[0])
    with expect_refusal(UnknownId):
        await store.run("run_none")
    assert isinstance(caught[0], LookupError)


async def _five_sessions(store: Store) -> None:
    for n in range(5):
        await new_session(store, f"ses_{n}", provider=("even", "odd")[n % 2], at=n * 1000)


@FINDING.of_one_store
async def sessions_are_listed_newest_first(store: Store) -> None:
    await _five_sessions(store)
    listed = [each.session_id for each in (await store.sessions()).rows]
    assert listed == ["ses_4", "ses_3", "ses_2", "ses_1", "ses_0"]


@FINDING.of_one_store
async def sessions_are_filtered(store: Store) -> None:
    await _five_sessions(store)
    for each in ("ses_1", "ses_4"):
        await store.append(replace(batch(1, "session_closed", session_id=each), closes=True))
    closed = await store.sessions(state="closed")
    assert [each.session_id for each in closed.rows] == ["ses_4", "ses_1"]
    some = await store.sessions(provider="even", state="open", since=2000)
    assert [each.session_id for each in some.rows] == ["ses_2"]


@FINDING.of_one_store
async def pages_of_sessions_join(store: Store) -> None:
    await _five_sessions(store)
    listed: list[str] = []
    page = await store.sessions(limit=2)
    listed += [each.session_id for each in page.rows]
    while page.cursor is not None:
        page = await store.sessions(limit=2, cursor=page.cursor)
        listed += [each.session_id for each in page.rows]
    assert listed == ["ses_4", "ses_3", "ses_2", "ses_1", "ses_0"]


async def _runs(store: Store) -> None:
    for session_id, provider in ((SESSION, "echo"), (OTHER, "shell")):
        await new_session(store, session_id, provider)
        for n, status in enumerate(("running", "failed", "completed"), 1):
            end = "run_started" if status == "running" else f"run_{status}"
            run = f"run_{session_id}_{n}"
            await store.append(batch(n, end, session_id=session_id, run=run, status=status))


@FINDING.of_one_store
async def runs_are_listed_newest_first(store: Store) -> None:
    await _runs(store)
    listed = [each.run_id for each in (await store.runs()).rows]
    assert listed == [f"run_{each}_{n}" for each in (OTHER, SESSION) for n in (3, 2, 1)]


@FINDING.of_one_store
async def runs_are_filtered(store: Store) -> None:
    await _runs(store)
    ended = await store.runs(session_id=SESSION, statuses=["failed", "completed"])
    assert [each.run_id for each in ended.rows] == ["run_ses_a_3", "run_ses_a_2"]
    running = await store.runs(statuses=["running"], provider="shell")
    assert [each.run_id for each in running.rows] == ["run_ses_b_1"]
    assert (await store.runs(statuses=[])).rows == ()


@FINDING.of_one_store
async def pages_of_runs_join(store: Store) -> None:
    await _runs(store)
    page = await store.runs(provider="echo", limit=2)
    rest = await store.runs(provider="echo", limit=2, cursor=page.cursor)
    assert [each.run_id[-1] for each in (*page.rows, *rest.rows)] == ["3", "2", "1"]
    assert rest.cursor is None


@FINDING.of_one_store
async def an_id_may_be_shortened_while_it_is_unambiguous(store: Store) -> None:
    for session_id in ("ses_abc", "ses_abd", "ses_x"):
        await new_session(store, session_id)
    assert await store.resolve("ses_x") == "ses_x"
    assert await store.resolve("ses_abd") == "ses_abd"
    with expect_refusal(AmbiguousId) as caught:
        await store.resolve("ses_ab")
    (error,) = caught
    assert isinstance(error, AmbiguousId)
    assert error.candidates == ("ses_abc", "ses_abd")
    with expect_refusal(UnknownId):
        await store.resolve("ses_abcd")


@FINDING.of_one_store
async def a_whole_id_is_never_ambiguous(store: Store) -> None:
    await new_session(store, "ses_ab")
    await new_session(store, "ses_abc")
    assert await store.resolve("ses_ab") == "ses_ab"


@FINDING.of_one_store
async def no_character_of_an_id_is_a_wildcard(store: Store) -> None:
    for session_id in ("ses%", "ses_1", "ses*[a]", "seß"):
        await new_session(store, session_id)
    assert await store.resolve("ses%") == "ses%"
    assert await store.resolve("ses_") == "ses_1"
    assert await store.resolve("ses*") == "ses*[a]"
    assert await store.resolve("seß") == "seß"
    with expect_refusal(UnknownId):
        await store.resolve("SES")


@FINDING.of_one_store
async def an_id_is_found_among_those_of_its_kind(store: Store) -> None:
    await new_session(store, "x_session")
    await store.append(batch(1, "a", session_id="x_session", run="x_run", status="running"))
    await put_snapshot(
        store,
        SnapshotRow(snapshot_id="x_snap", session_id="x_session", run_id="x_run", at=1, body=b""),
    )
    assert await store.resolve("x", "session") == "x_session"
    assert await store.resolve("x", "run") == "x_run"
    assert await store.resolve("x", "snapshot") == "x_snap"
    with expect_refusal(AmbiguousId):
        await store.resolve("x")


@FINDING.of_one_store
async def an_ambiguous_answer_stays_short(store: Store) -> None:
    for n in range(50):
        await new_session(store, f"ses_{n:02}")
    with expect_refusal(AmbiguousId) as caught:
        await store.resolve("")
    assert len(str(caught[0])) < 200


@FINDING.of_one_store
async def a_run_is_known_by_one_name_only(store: Store) -> None:
    await new_session(store)
    await store.append(batch(1, "run_started", run=RUN, status="running"))
    with expect_refusal(UnknownId):
        await store.run(RUN[:-1])
