"""SQL of the ledger for former results: last results of jobs that are scheduled to run again.

The ledger keeps such a result until the job's next run has ended. If no attempt has started by
the next import of the jobs, the job returns to its former state. The column `begun` is the number
of the first attempt that has started since, or 0.
"""

from __future__ import annotations

from typing import Final

TABLE: Final = """
create table if not exists standing (
    job text primary key,
    begun integer not null,
    state text not null,
    provider text not null,
    fingerprint text not null,
    digests blob not null,
    body blob not null,
    resume integer not null,
    ended integer not null,
    result blob not null
) without rowid;
"""

FORMER_TABLE: Final = """
create table if not exists former (job text primary key, attempts integer not null) without rowid
"""
RECORD_FORMER_ATTEMPTS: Final = (
    "insert or replace into former select id, attempts from job where id = ?"
)
"""Record that a job's attempts so far were for other work."""

SET_ASIDE: Final = (
    "insert or ignore into standing select id, 0, state, provider, fingerprint, digests, body,"
    " resume, ended, result from job where id = ? and ended is not null"
)
"""Keep the result, if there is one, of a job that will run again."""
RESTORE: Final = (
    "update job set (state, provider, fingerprint, digests, body, resume, ended, result) ="
    " (select state, provider, fingerprint, digests, body, resume, ended, result from standing"
    " where standing.job = job.id) where id in (select job from standing where not begun)"
)
"""Restore the jobs that did not start after all; `FORGET_RESTORED` follows."""
FORGET_RESTORED: Final = "delete from standing where not begun"
BEGUN: Final = "update standing set begun = ? where job = ? and not begun"
"""Record the first attempt that started since the result was kept."""
UNBEGUN: Final = (
    "update standing set begun = 0 where job = ? and begun = ? and not exists (select 1 from"
    " attempt where attempt.job = standing.job and number = begun and run is not null)"
)
"""Record that this attempt did not start after all; an earlier one still counts."""
FORMER_STATE: Final = (
    "select state, json_extract(cast(result as text), '$.failure.kind') from standing where job = ?"
)
FORMER_LINE: Final = "select result from standing where job = ?"
REPLACED: Final = "delete from standing where job = ?"
"""Delete a job's former result: the job has a new one."""
STATES: Final = (
    "select standing.state, count(*) from standing join job on job.id = standing.job"
    " where round = ? group by standing.state"
)
ALL_RESULTS: Final = (
    "select ended, result from job where ended is not null"
    " union all select ended, result from standing order by ended"
)
FAILURES: Final = (
    "select json_extract(cast(result as text), '$.failure.kind') as kind, count(*) from ("
    " select result from job where round = ? and ended is not null union all"
    " select standing.result from standing join job on job.id = standing.job"
    " where round = ?)"
    " where kind is not null group by kind order by 2 desc, 1"
)
LAST_END: Final = (
    "select max(ended) from (select max(ended) as ended from job where ended is not null"
    " union all select max(ended) from standing)"
)
