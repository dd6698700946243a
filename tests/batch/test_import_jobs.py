"""Invalid jobs: the text and the place of each message."""

import json
from pathlib import Path

import pytest
import trio
import trio.testing

from sessionmgr import Job, PermissionMode, run_batch
from sessionmgr.adapter import NATIVE, Capabilities, PermissionMap, RunSpec
from sessionmgr.adapter.permission_map import MappedMode
from sessionmgr.batch import JobsInvalid, LedgerUnusable, spool_jobs
from sessionmgr.batch.denials import NO_RULES
from sessionmgr.model import UNSUPPORTED, Json
from sessionmgr.testing.scripted_provider import ALL_IT_DOES, Say, scripted
from tests.batch.open_batch import collect, job, open_batch_setup, results_of

SHY = scripted("shy", permissions=PermissionMap({PermissionMode.DEFAULT: MappedMode("default")}))

GIVEN: dict[str, dict[str, Json]] = {"actor": {"x": 1}}


def line(**fields: object) -> str:
    return json.dumps({"id": "a", "provider": "actor", "prompt": "hi", **fields})


class PickyProvider(scripted("picky")):  # type: ignore[misc]
    """A provider that refuses every run."""

    @classmethod
    def fault(cls, spec: RunSpec) -> str | None:
        return "options.speed: 3 is too fast; leave it out"


SAYER = scripted("sayer", capabilities=Capabilities(structured_output=NATIVE))

WRONG = [
    ("{", "invalid JSON: the object does not end on this line"),
    ("[]", "expected a JSON object, got [] (a list)"),
    ('"text"', 'expected a JSON object, got "text" (a string)'),
    (line(promt="x"), "promt: unknown field; did you mean 'prompt'?"),
    (line(zzz=1), f"zzz: unknown field; known: {', '.join(Job.__struct_fields__)}"),
    ('{"provider": "actor", "prompt": "x"}', 'missing "id": every job needs a unique id'),
    (line(id=""), "id: expected a string that is not empty, got"),
    (line(id=3), "id: expected a string that is not empty, got 3 (a number)"),
    (line(prompt=None), 'missing "prompt" (or "prompt_file")'),
    (line(prompt_file="x"), 'prompt_file: there is a "prompt" as well; keep one of them'),
    (line(prompt=None, prompt_file="/no/file"), "prompt_file: /no/file: No such file or directory"),
    (line(provider=None), 'missing "provider", and there is no default (-p PROVIDER)'),
    (line(provider="actr"), "provider: unknown provider 'actr'; did you mean 'actor'?"),
    (line(cwd="/no/place"), "cwd: no such directory: /no/place"),
    (
        line(permission_mode="fullauto"),
        "permission_mode: unknown permission mode 'fullauto'; did you mean 'full_auto'?",
    ),
    (
        line(permission_mode=3),
        "permission_mode: expected one of: default, accept_edits, plan, full_auto, dangerous",
    ),
    (
        line(provider="shy", permission_mode="plan"),
        "permission_mode: shy does not support permission_mode plan; it supports: default",
    ),
    (line(require=["fly"]), "require: unknown capability 'fly'"),
    (line(require=["resum"]), "require: unknown capability 'resum' (did you mean"),
    (line(require=["steer", "plan_mode"], provider="shy"), "require: shy does not support"),
    (line(images=["/no/image"]), "images: /no/image: No such file or directory"),
    (line(model="big"), "model: actor does not support model_choice"),
    (line(max_turns=0), "max_turns: expected a whole number, 1 or more, got 0 (a number)"),
    (line(max_turns=2), "max_turns: actor does not support max_turns"),
    (line(deadline=-1), "deadline: expected a duration like 900, 15m or 2h, got -1 (a number)"),
    (line(budget_usd="1"), 'budget_usd: expected dollars, more than 0, got "1" (a string)'),
    (line(effort="high"), "effort: actor does not support effort"),
    (line(system_prompt="x"), "system_prompt: actor does not support system_prompt"),
    (
        line(tools_denied=["Bash"]),
        "tools_denied: actor does not support tools_denied; remove it",
    ),
    (line(options={"x": 1}), "options: options.actor: unknown option 'x'"),
    (line(provider="picky"), "options.speed: 3 is too fast; leave it out"),
    (line(env={"CLAUDECODE": "1"}), "env: "),
    (line(env={"A=B": "1"}), "env: a child's environment cannot contain 'A=B': invalid name"),
    (
        line(env={"A": "\0"}),
        "env: a child's environment cannot contain 'A': its value contains a NUL byte",
    ),
    (
        line(provider="shell", prompt=""),
        "prompt: ",
    ),
    (line(provider="shell", prompt="echo 'a"), "prompt: "),
    (line(provider="shell", schema={}), "schema: shell does not support structured_o"),
    (
        line(provider="sayer", schema={"type": "x"}),
        'schema: not a valid JSON Schema: at /type, "x" is not allowed (types are',
    ),
    (line(env={"A": 1}), "env: expected an object of strings, got a number for A"),
    (line(schema="x"), 'schema: expected an object, got "x" (a string)'),
    ("[" * 100_000, "the object is nested too deep"),
]


@pytest.mark.parametrize(("text", "what"), WRONG, ids=range(len(WRONG)))
async def test_the_error_of_a_wrong_line_names_file_line_and_field(
    autojump_clock: object, tmp_path: Path, text: str, what: str
) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_text(f"{line(id='good')}\n\n{text}\n")
    async with open_batch_setup(
        others={"shy": SHY, "sayer": SAYER, "picky": PickyProvider}
    ) as setup:
        with pytest.raises(JobsInvalid) as refused:
            await collect(run_batch(setup.manager, path))
        (problem,) = refused.value.problems
        where = f"{path}:3:2: " if "does not end" in what else f"{path}:3: "
        assert problem.startswith(f"{where}{what}")
        assert not setup.actor.log


async def test_invalid_utf8_is_reported(autojump_clock: object, tmp_path: Path) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_bytes(b'{"id": "\xff"}\n')
    (tmp_path / "prompt").write_bytes(b"\xff")
    async with open_batch_setup() as setup:
        with pytest.raises(JobsInvalid, match="jsonl:1:9: the line is not UTF-8"):
            await collect(run_batch(setup.manager, path))
        wrong = Job(id="a", provider="actor", prompt_file=str(tmp_path / "prompt"))
        with pytest.raises(JobsInvalid, match=r"job 1: prompt_file: .*prompt is not UTF-8 text"):
            await collect(run_batch(setup.manager, [wrong]))


async def test_a_missing_file_is_reported(autojump_clock: object, tmp_path: Path) -> None:
    async with open_batch_setup() as setup:
        with pytest.raises(JobsInvalid, match=r"none\.jsonl: no such file"):
            await collect(run_batch(setup.manager, tmp_path / "none.jsonl"))


async def test_a_doubled_id_names_both_lines(autojump_clock: object, tmp_path: Path) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_text(f"\ufeff{line()}\n{line()}\n", encoding="utf-8")
    async with open_batch_setup() as setup:
        with pytest.raises(JobsInvalid) as refused:
            await collect(run_batch(setup.manager, path))
    assert refused.value.problems == (f"{path}:2: id: 'a' is already used at {path}:1",)


async def test_a_duplicate_id_is_reported_beside_other_mistakes_of_both_jobs(
    autojump_clock: object, tmp_path: Path
) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_text(f"{line(model='big')}\n{line(model='small')}\n")
    async with open_batch_setup() as setup:
        with pytest.raises(JobsInvalid) as refused:
            await collect(run_batch(setup.manager, path))
    model, doubled = refused.value.problems
    assert model.startswith(f"{path}:1: model: actor does not support model_choice")
    assert doubled == f"{path}:2: id: 'a' is already used at {path}:1"


async def test_defaults_and_options_fill_in(autojump_clock: object, tmp_path: Path) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_text('{"id": "a"}\n{"id": "b", "prompt": "own"}\n')
    (tmp_path / "prompt").write_text("default")
    defaults = Job(id="-", provider="actor", prompt_file=str(tmp_path / "prompt"))
    async with open_batch_setup() as setup:
        await collect(run_batch(setup.manager, path, defaults=defaults))
        assert sorted(setup.prompts()) == ["default", "own"]
        with pytest.raises(JobsInvalid, match=r"options: options\.actor: unknown option 'x'"):
            await collect(run_batch(setup.manager, path, defaults=defaults, options=GIVEN))


async def test_jobs_that_share_a_directory_are_warned_about(
    autojump_clock: object, tmp_path: Path
) -> None:
    talker = scripted("talker", capabilities=type(ALL_IT_DOES)(tool_use=UNSUPPORTED))
    async with open_batch_setup(others={"talker": talker}) as setup:
        jobs = [job(f"j{n}", cwd=str(tmp_path)) for n in range(3)]
        jobs += [job("alone", cwd="/"), job("talks", provider="talker", cwd=str(tmp_path))]
        jobs.append(job("plans", cwd=str(tmp_path), permission_mode=PermissionMode.PLAN))
        batch = run_batch(setup.manager, jobs)
        await collect(batch)
        assert batch.warnings == (
            (
                f"3 jobs share the directory {tmp_path}, and up to 3 of them write to it at once;"
                " give each job its own checkout or worktree"
            ),
            NO_RULES,
        )
        one_by_one = run_batch(setup.manager, jobs, concurrency=1)
        await collect(one_by_one)
        assert one_by_one.warnings == (NO_RULES,)


async def test_arguments_without_an_effect_are_warned_about(autojump_clock: object) -> None:
    async with open_batch_setup() as setup:
        jobs = [job("login"), job("parser")]
        batch = run_batch(setup.manager, jobs, concurrency=1, only=["log*", "lgo*"], skip=["x"])
        assert [each.job for each in await collect(batch)] == ["login"]
        assert batch.warnings == ("no job's id matches 'lgo*'", "no job's id matches 'x'", NO_RULES)
        nothing = run_batch(setup.manager, [])
        await collect(nothing)
        assert nothing.warnings == ("contains no jobs",)


async def test_many_shared_directories_make_few_warnings(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup() as setup:
        jobs: list[Job] = []
        for n in range(5):
            (tmp_path / str(n)).mkdir()
            jobs += [job(f"{n}{name}", cwd=str(tmp_path / str(n))) for name in "ab"]
        batch = run_batch(setup.manager, jobs)
        await collect(batch)
        assert batch.warnings[3:] == ("2 other directories are shared, too", NO_RULES)


async def test_jobs_from_a_stream_are_spooled(autojump_clock: object, tmp_path: Path) -> None:
    send, receive = trio.testing.memory_stream_pair()
    await send.send_all(line().encode() + b"\n")
    await send.aclose()
    path = await spool_jobs(receive, tmp_path / "out")
    async with open_batch_setup() as setup:
        assert await results_of(run_batch(setup.manager, path, out=tmp_path / "out")) == {
            "a": "completed"
        }


@pytest.mark.parametrize("content", [b"no database at all, but long enough", b""])
async def test_a_ledger_that_is_none_is_left_alone(
    autojump_clock: object, tmp_path: Path, content: bytes
) -> None:
    ledger = tmp_path / "ledger.db"
    if content:
        ledger.write_bytes(content)
    else:
        ledger.mkdir()
    async with open_batch_setup() as setup:
        with pytest.raises(LedgerUnusable, match="ledger"):
            await collect(run_batch(setup.manager, [job("a", Say(text="x"))], out=tmp_path))
    assert not content or ledger.read_bytes() == content


async def test_an_impossible_directory_is_reported(autojump_clock: object, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    async with open_batch_setup() as setup:
        with pytest.raises(LedgerUnusable, match="not a directory; choose another one"):
            await collect(run_batch(setup.manager, [job("a")], out=tmp_path / "file" / "out"))
