"""Wrong arguments raise at the call, with their name and value."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from sessionmgr import Job, open_manager, run_batch
from sessionmgr.adapter import Allow
from sessionmgr.batch import JobsInvalid
from sessionmgr.manager import ArgumentTypeInvalid, ArgumentValueInvalid, ManagerClosing, NotInTrio
from sessionmgr.testing.scripted_provider import scripted
from tests.manager.harness import open_harness


class Asker:
    """A callable approver object."""

    async def __call__(self, request: object) -> Allow:
        del request
        return Allow()


def allow_at_once(request: object) -> Allow:
    del request
    return Allow()


async def allow(request: object) -> Allow:
    del request
    return Allow()


WISHES: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"clocks": 60}, ArgumentTypeInvalid, "clocks must be Clocks, such as .*, not 60"),
    ({"budget": 2.0}, ArgumentTypeInvalid, "budget must be Budget, such as .*, not 2.0"),
    ({"prompt": None}, ArgumentTypeInvalid, "prompt must be a str, not None"),
    ({"prompt": b"x"}, ArgumentTypeInvalid, "prompt must be a str, not b'x'"),
    ({"prompt": ""}, ArgumentValueInvalid, "prompt is '': it is empty"),
    ({"prompt": " \n"}, ArgumentValueInvalid, "prompt is ' .*': it is empty"),
    ({"env": {"A": 1}}, ArgumentTypeInvalid, r"env\['A'\] must be a str, not 1"),
    ({"env": ["A=1"]}, ArgumentTypeInvalid, "env must be a dict of str to str, not <class 'list'>"),
    ({"require": "resume"}, ArgumentTypeInvalid, "require must be a list of str, .*'resume'$"),
    ({"prefer": [1]}, ArgumentTypeInvalid, r"prefer must be a list of str, .* not \[1\]"),
    ({"tools_allowed": "Bash"}, ArgumentTypeInvalid, "tools_allowed must be a list of str"),
    (
        {"approve": allow_at_once},
        ArgumentTypeInvalid,
        "approve must be an async function",
    ),
    ({"approve": True}, ArgumentTypeInvalid, "approve must be an async function .* not True"),
    ({"permission_mode": "acceptEdits"}, ArgumentValueInvalid, ".*did you mean 'accept_edits'"),
    (
        {"permission_mode": "bypassPermissions"},
        ArgumentValueInvalid,
        "permission_mode is 'bypassPermissions': .*did you mean 'dangerously_skip_permissions'",
    ),
    ({"schema": "x"}, ArgumentTypeInvalid, "schema must be a JSON Schema as a dict .*, not 'x'"),
    ({"schema": Job}, ArgumentTypeInvalid, "schema must be a JSON Schema .*<class .*Job'>"),
    ({"schema": {"type": Job}}, ArgumentValueInvalid, "schema is .*it is not JSON"),
    ({"metadata": {"a": Job}}, ArgumentValueInvalid, "metadata is .*it is not JSON"),
    ({"max_turns": 0}, ArgumentValueInvalid, "max_turns is 0: it must be 1 or more"),
    ({"max_turns": True}, ArgumentTypeInvalid, "max_turns must be an int, not True"),
    ({"options": "x"}, ArgumentTypeInvalid, "options must be a dict, .*, not 'x'"),
    ({"modell": "x"}, TypeError, "unknown argument 'modell'; did you mean 'model'"),
    ({"qqqq": "x"}, TypeError, "unknown argument 'qqqq'$"),
]
OF_SESSIONS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"provider": None}, ArgumentTypeInvalid, "provider must be a str, not None"),
    ({"cwd": 3}, ArgumentTypeInvalid, "cwd must be a str or a Path, not 3"),
    ({"clocks": 60}, ArgumentTypeInvalid, "clocks must be Clocks"),
    ({"budget": 2.0}, ArgumentTypeInvalid, "budget must be Budget"),
    ({"approve": allow_at_once}, ArgumentTypeInvalid, "approve must be an async"),
    ({"permission_mode": "acceptEdits"}, ArgumentValueInvalid, ".*did you mean 'accept_edits'"),
]
OF_BATCHES: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"jobs": ["a"]}, ArgumentTypeInvalid, r"jobs\[0\] must be a Job, .* or a dict .*, not 'a'"),
    ({"jobs": {"id": "a"}}, ArgumentTypeInvalid, "jobs must be a file of jobs or an iterable"),
    ({"jobs": None}, ArgumentTypeInvalid, "jobs must be a file of jobs .*, not None"),
    ({"approve": allow_at_once}, ArgumentTypeInvalid, "approve must be an async"),
    ({"concurrency": "4"}, ArgumentTypeInvalid, "concurrency must be an int, not '4'"),
    ({"concurrency": 0}, ArgumentValueInvalid, "concurrency is 0: it must be 1 or more"),
    ({"only": "core-*"}, ArgumentTypeInvalid, r"only must be a list of str, .*, not 'core-\*'"),
    ({"out": 3}, ArgumentTypeInvalid, "out must be a str or a Path, not 3"),
    ({"manager": None}, ArgumentTypeInvalid, "manager must be the Manager .*, not None"),
    ({"defaults": {"id": "a"}}, ArgumentTypeInvalid, r"defaults must be a Job, .* \{'id': 'a'\}"),
    ({"per_provider": {"a": "2"}}, ArgumentTypeInvalid, "per_provider must be a dict .* to int"),
    ({"force": "no"}, ArgumentTypeInvalid, "force must be True or False, not 'no'"),
]
OF_RECORDS: list[tuple[str, dict[str, Any], str]] = [
    ("session", {"session_id": None}, "session_id must be a str, not None"),
    ("submit_resume", {"snapshot": 3}, "snapshot must be a Snapshot or its id, not 3"),
    ("submit_follow_up", {"run_id": 3}, "run_id must be a str, not 3"),
    ("submit_follow_up", {"run_id": "r", "message": ""}, "message is '': it is empty"),
    ("cancel", {"id": None}, "id must be a str, not None"),
    ("result", {"run_id": None}, "run_id must be a str, not None"),
    ("events", {"run_id": None}, "run_id must be a str, not None"),
    ("settled", {"session_id": None}, "session_id must be a str, not None"),
    ("blob", {"sha256": b"x"}, "sha256 must be a str, not b'x'"),
    ("subscribe", {"session_id": None}, "session_id must be a str, not None"),
    ("subscribe", {"session_id": "s", "types": "x"}, "types must be a list of event types"),
    ("costs", {"ids": "ses_1"}, "ids must be a list of ids, not 'ses_1'"),
    ("sessions", {"state": "opn"}, "state is 'opn': it must be 'open' or 'closed'"),
    ("sessions", {"limit": 0}, "limit is 0: it must be 1 or more"),
    ("health", {"providers": "claude"}, "providers must be a list of providers' names"),
    ("negotiate", {"provider": "actor", "require": "x"}, "require must be a list of str"),
]


@pytest.mark.parametrize(("given", "error", "said"), WISHES)
async def test_a_wrong_argument_of_a_run_raises_before_it_starts(
    autojump_clock: MockClock, given: dict[str, Any], error: type[Exception], said: str
) -> None:
    async with open_harness() as house:
        session: Any = await house.manager.open_session("actor")
        with pytest.raises(error, match=f"^start: {said}"):
            session.start(**{"prompt": "x", **given})
        with pytest.raises(error, match=f"^submit: {said}"):
            await session.submit(**{"prompt": "x", **given})
        assert not (await house.store.sessions()).rows


@pytest.mark.parametrize(("given", "error", "said"), OF_SESSIONS)
async def test_a_wrong_argument_of_a_session_raises_before_it_is_opened(
    autojump_clock: MockClock, given: dict[str, Any], error: type[Exception], said: str
) -> None:
    async with open_harness() as house:
        manager: Any = house.manager
        with pytest.raises(error, match=f"^open_session: {said}"):
            await manager.open_session(**{"provider": "actor", **given})


@pytest.mark.parametrize(("given", "error", "said"), OF_BATCHES)
async def test_a_wrong_argument_of_a_batch_raises_before_it_is_entered(
    autojump_clock: MockClock, given: dict[str, Any], error: type[Exception], said: str
) -> None:
    run: Any = run_batch
    async with open_harness() as house:
        jobs = [Job(id="a", prompt="x", provider="actor")]
        with pytest.raises(error, match=f"^run_batch: {said}"):
            run(**{"manager": house.manager, "jobs": jobs, **given})


@pytest.mark.parametrize(("call", "given", "said"), OF_RECORDS)
async def test_a_wrong_argument_of_a_call_about_records_raises_at_once(
    autojump_clock: MockClock, call: str, given: dict[str, Any], said: str
) -> None:
    async with open_harness() as house:
        with pytest.raises((ArgumentTypeInvalid, ArgumentValueInvalid), match=f"^{call}: {said}"):
            await getattr(house.manager, call)(**given)


async def test_a_wrong_message_to_a_run_raises_before_it_is_sent(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        run: Any = await session.submit("x")
        with pytest.raises(ArgumentTypeInvalid, match=r"^append: content must be a str, not None"):
            await run.append(None)
        with pytest.raises(ArgumentValueInvalid, match=r"^append: content is ''"):
            await run.append("")
        with pytest.raises(ArgumentTypeInvalid, match=r"^pause: message must be a str, not 3"):
            await run.pause(message=3)
        assert [each.id for each in session.unended()] in ([], [run.id])


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ({"id": "a", "promt": "x"}, "job 1: promt: unknown field; did you mean 'prompt'"),
        ({"prompt": "x"}, 'job 1: missing "id"'),
        ({"id": "a", 3: "x"}, "job 1: the name of a field must be a str, not 3"),
        ({"id": "a", "prompt": "x", "env": {"A": Job}}, "job 1: env: the value is not JSON"),
        ({"id": "a", "prompt": "x", "provider": "actr"}, "job 1: .*did you mean 'actor'"),
    ],
)
async def test_a_job_as_a_dict_is_checked_like_a_line_of_a_jobs_file(
    autojump_clock: MockClock, job: Any, said: str
) -> None:
    async with open_harness() as house:
        with pytest.raises(JobsInvalid, match=said):
            await run_batch(house.manager, [job]).__aenter__()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"deadline": "soon"}, 'job 1: deadline: expected .*, got "soon"'),
        (
            {"permission_mode": "acceptEdits"},
            "job 1: permission_mode: .*did you mean 'accept_edits",
        ),
        ({"env": {"A": 1}}, "job 1: env: expected an object of strings, got .* for A"),
        ({"metadata": {"A": Job}}, "job 1: metadata: the value is not JSON"),
    ],
)
async def test_a_job_with_a_wrong_field_is_refused_with_its_place_and_field(
    autojump_clock: MockClock, fields: dict[str, Any], said: str
) -> None:
    async with open_harness() as house:
        jobs = [Job(id="a", prompt="x", provider="actor", **fields)]
        with pytest.raises(JobsInvalid, match=said):
            await run_batch(house.manager, iter(jobs)).__aenter__()


def test_a_wrong_argument_of_a_manager_raises_at_once() -> None:
    wrong: Any = {"clocks": 60}
    with pytest.raises(ArgumentTypeInvalid, match=r"^open_manager: clocks must be Clocks"):
        open_manager(**wrong)
    wrong = {"store": b"x"}
    with pytest.raises(ArgumentTypeInvalid, match=r"^open_manager: store must be a str, a Path"):
        open_manager(**wrong)
    wrong = {"adapters": {"a": "b"}}
    with pytest.raises(ArgumentTypeInvalid, match=r"^open_manager: adapters must be a dict"):
        open_manager(**wrong)
    wrong = {"environ": {"A": 1}}
    with pytest.raises(ArgumentTypeInvalid, match=r"^open_manager: environ\['A'\] must be a str"):
        open_manager(**wrong)


@pytest.mark.parametrize("approve", [allow, partial(allow), Asker()], ids=type)
async def test_whatever_is_async_may_answer(
    autojump_clock: MockClock, approve: Callable[[object], Awaitable[Allow]]
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor", approve=approve)
        assert (await (await session.submit("x")).result()).text == "x"


async def test_a_manager_that_is_not_open_opens_no_session(autojump_clock: MockClock) -> None:
    manager = open_manager(adapters={"actor": scripted("actor")})
    with pytest.raises(ManagerClosing, match=r"open_session: .* has not been entered"):
        await manager.open_session("actor")
    async with manager:
        session = await manager.open_session("actor")
        await (await session.submit("x")).result()
    for call in (
        lambda: manager.open_session("actor"),
        lambda: manager.session(session.id),
        lambda: manager.submit_follow_up("run_x", "y"),
        lambda: manager.submit_resume("snp_x"),
    ):
        with pytest.raises(ManagerClosing, match="has been left"):
            await call()
    with pytest.raises(ManagerClosing):
        await session.submit("y")


def test_a_manager_on_asyncio_says_that_it_needs_trio() -> None:
    async def main() -> None:
        async with open_manager():
            pass

    with pytest.raises(NotInTrio, match=r"asyncio.*trio\.run\(main\)"):
        main().send(None)  # as the loop of asyncio does


async def test_a_manager_of_another_trio_run_says_so() -> None:
    async with open_manager(adapters={"actor": scripted("actor")}) as manager:

        async def elsewhere() -> None:
            with pytest.raises(NotInTrio, match=r"opened in another trio\.run"):
                await manager.open_session("actor")

        await trio.to_thread.run_sync(trio.run, elsewhere)
