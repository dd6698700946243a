"""Sections about values: events, jobs, results, rules, arguments."""

from __future__ import annotations

from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING, cast

import msgspec

from sessionmgr.adapter import Allow, ApprovalRequest, Budget, Deny
from sessionmgr.batch import BatchOptions, BatchProgress, Job, JobResult, Rule, Summary
from sessionmgr.field_docs import field_docs, structs_in, summary
from sessionmgr.manager import DEFAULT_CLOCKS, Clocks, CommonWishes, RunArguments
from sessionmgr.model import EVENT_TYPES, OUTCOMES, Event, RunResult
from sessionmgr.reference.fields import argument_table, field_table, member_table
from sessionmgr.reference.markdown import code, section, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

OWN_SECTIONS: tuple[type, ...] = (RunResult, JobResult, Summary, BatchProgress, Job, Rule)


def events() -> str:
    """Return the section on events."""
    parts = ["## Events", "Every event has these fields:", field_table(Event)]
    parts += ["Further fields by type of event:"]
    for _, same in groupby(EVENT_TYPES.values(), key=_own_fields):
        parts += _events(list(same))
    return section(*parts)


def _own_fields(of: type[Event]) -> tuple[type, tuple[str, ...]]:
    """Return the common base and the fields of an event's type, by which events share an entry."""
    shared = of if of.__base__ is Event else cast("type", of.__base__)
    return shared, of.__struct_fields__


def _events(same: list[type[Event]]) -> Iterator[str]:
    yield f"### {', '.join(each.type for each in same)}"
    if len(same) == 1:
        yield f"`{same[0].__name__}`: {summary(same[0])}"
    else:
        yield "\n".join(f"- `{each.__name__}`: {summary(each)}" for each in same)
    if set(same[0].__struct_fields__) - set(Event.__struct_fields__):
        yield field_table(same[0], Event.__struct_fields__)


def jobs() -> str:
    """Return the section on jobs."""
    return section(
        "## Job",
        "One line of a jobs file, and `sessionmgr.Job`. A field that is left out takes the "
        "batch's default: a flag, a setting, or `defaults=`. In files, `deadline` may also be "
        'a string such as `"15m"`.',
        field_table(Job),
    )


def results() -> str:
    """Return the sections on results and summaries."""
    return section(
        "## RunResult",
        "What `run.result()` returns and `show --json` prints.",
        field_table(RunResult),
        "## JobResult",
        f"One line of `results.jsonl`. {summary(JobResult)} It has all fields of "
        "[RunResult](#runresult) and these:",
        field_table(JobResult, RunResult.__struct_fields__),
        "## Summary",
        "The file `summary.json` of a batch, and `batch.summary()`.",
        field_table(Summary),
        "## Progress",
        "What `batch.progress()` returns, and the display of a batch shows.",
        field_table(BatchProgress),
    )


def parts() -> str:
    """Return the section on the values inside events and results."""
    inner = structs_in(*EVENT_TYPES.values(), RunResult, Summary, BatchProgress, Job)
    shown = {each.__name__: each for each in inner if each not in OWN_SECTIONS}
    blocks = ["## Values inside events and results"]
    for _, each in sorted(shown.items()):
        heading = [f"### {each.__name__}", summary(each)]
        if issubclass(each, Event):
            continue
        blocks += heading
        if issubclass(each, StrEnum):
            blocks.append(member_table(each))
        else:
            blocks.append(field_table(cast("type[msgspec.Struct]", each)))
    return section(*blocks)


def ends() -> str:
    """Return the section on the ends of runs."""
    rows = (
        (
            cause.value,
            code(end.status.value),
            code(end.reason or ""),
            code(end.kind or ""),
            str(end.exit_code),
        )
        for cause, end in OUTCOMES.items()
    )
    heads = ("cause", "status", "reason", "kind of failure", "exit code of `sessionmgr run`")
    return section("## How a run ends", table(heads, rows))


def rules() -> str:
    """Return the section on approval rules."""
    return section(
        "## Approval rules",
        "The fields of one `[[rule]]`. [The page on rules](batch/RULES.md) explains how "
        "rules match.",
        field_table(Rule),
    )


def approval() -> str:
    """Return the section on approval requests and their answers."""
    called = "An `approve` function gets an `ApprovalRequest` and returns `Allow` or `Deny`."
    parts = ["## Approval", called]
    for each in (ApprovalRequest, Allow, Deny):
        parts += [f"### {each.__name__}", summary(each), field_table(each)]
    return section(*parts)


def arguments() -> str:
    """Return the section on the arguments of the library's calls."""
    defaults = msgspec.structs.asdict(DEFAULT_CLOCKS)
    return section(
        "## Arguments",
        "### Arguments of start",
        "Keyword arguments of `session.start`, `submit`, `manager.resume` and follow-ups.",
        argument_table(RunArguments, CommonWishes),
        "### Arguments of run_batch",
        argument_table(BatchOptions),
        "### Clocks",
        "Time limits in seconds; 0 disables one. The defaults of a manager:",
        _with_defaults(defaults.items()),
        "### Budget",
        summary(Budget),
        field_table(Budget),
    )


def _with_defaults(defaults: Iterable[tuple[str, float]]) -> str:
    texts = field_docs(Clocks)
    rows = (
        (code(name), f"{seconds:g} s" if seconds else "off", texts.get(name, ""))
        for name, seconds in defaults
    )
    return table(("clock", "default", "limits"), rows)
