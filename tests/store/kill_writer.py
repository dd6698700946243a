"""Writer that is killed repeatedly, and an examination of the file after each kill.

`kill_writer.py PATH KILLS SEED` prints one JSON object of figures, and exits with 1 at the first
violation of a law: every acknowledged event is there, as it was sent; no gap, no duplicate; a run
has one terminal event at most, and has ended exactly if it has one.
"""

import json
import os
import random
import signal
import sqlite3
import sys
import time
from contextlib import closing

import trio

from sessionmgr.store import (
    Append,
    EventRow,
    LeaseOwner,
    NewSession,
    RunRow,
    SqliteStore,
    open_sqlite_store,
)

SESSIONS = 4
TERMINAL = "('run_completed', 'run_failed', 'run_cancelled')"


def body(session_id: str, seq: int) -> bytes:
    """Return the record that belongs at a place."""
    return f"{session_id}/{seq}/".encode() * (seq % 30 + 1)


class SessionWriter:
    """Writer of one session: run after run, in batches of any size."""

    def __init__(self, store: SqliteStore, session_id: str, chance: random.Random) -> None:
        self.store = store
        self.session_id = session_id
        self.chance = chance
        self.fence = 0
        self.last = 0

    async def write_for_ever(self) -> None:
        """Acquire the lease, end the runs of the writer before, then write for ever."""
        new = NewSession(session_id=self.session_id, provider="p", at=1, body=b"")
        await self.store.create_session(new)
        me = LeaseOwner("boot", os.getpid(), 1, self.session_id)
        lease = await self.store.acquire(self.session_id, me, now=0, ttl=0)
        self.fence = lease.fence
        self.last = (await self.store.session(self.session_id)).last_seq
        left = await self.store.runs(session_id=self.session_id, statuses=["running"])
        for run in left.rows:
            await self.append(run.run_id, "cancelled", ["run_cancelled"])
        while True:
            await self.run()

    async def run(self) -> None:
        """Write a whole run."""
        run_id = f"run_{self.session_id}_{self.last}"
        deltas = ["message_streamed"] * self.chance.randrange(20)
        await self.append(run_id, "running", ["run_started", *deltas])
        for _ in range(self.chance.randrange(5)):
            types = ["message_streamed"] * self.chance.randrange(1, 40)
            await self.append(run_id, "running", types)
        status = self.chance.choice(["completed", "failed"])
        await self.append(run_id, status, ["message_received", f"run_{status}"])
        if self.chance.random() < 0.05:
            await self.store.prune(before=3, session_id=self.session_id)

    async def append(self, run_id: str, status: str, types: list[str]) -> None:
        """Append a batch, and report its acknowledgement."""
        first = self.last + 1
        rows = tuple(
            EventRow(seq, run_id, kind, body(self.session_id, seq))
            for seq, kind in enumerate(types, first)
        )
        appended = await self.store.append(
            Append(
                session_id=self.session_id,
                fence=self.fence,
                batch=f"bat_{self.fence}_{first}",
                first=first,
                at=1,
                rows=rows,
                runs=(RunRow(run_id, status, b""),),
            )
        )
        self.last = appended.last_seq
        os.write(1, f"{self.session_id} {self.last}\n".encode())


async def write(path: str, seed: int) -> None:
    """Write all sessions until the process is killed."""
    chance = random.Random(seed)
    async with open_sqlite_store(path) as store, trio.open_nursery() as nursery:
        for n in range(SESSIONS):
            writer = SessionWriter(store, f"ses_{n}", random.Random(chance.random()))
            nursery.start_soon(writer.write_for_ever)


def kill_once(path: str, chance: random.Random) -> dict[str, int]:
    """Let the writer run for a while, kill it, and return what was acknowledged."""
    out, report = os.pipe()
    seed = chance.getrandbits(32)
    pid = os.fork()
    if not pid:
        os.dup2(report, 1)
        os.close(out)
        os.close(report)
        trio.run(write, path, seed)
        os._exit(1)
    os.close(report)
    said = bytearray()
    acknowledgements = chance.choice([0, 1, 5, 20, 60])
    while said.count(b"\n") < acknowledgements:
        some = os.read(out, 65536)
        assert some, "the writer ended by itself"
        said += some
    time.sleep(chance.uniform(0, 0.02))
    os.kill(pid, signal.SIGKILL)
    while some := os.read(out, 65536):
        said += some
    os.close(out)
    _, status = os.waitpid(pid, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    acknowledged: dict[str, int] = {}
    for line in said.split(b"\n")[:-1]:
        session_id, last = line.decode().split()
        acknowledged[session_id] = int(last)
    return acknowledged


class StoreExaminer:
    """Examiner that reads the file after each kill, and remembers what it has seen."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.seen: dict[int, int] = {}
        self.acknowledged: dict[str, int] = {}

    def examine(self, acknowledged: dict[str, int]) -> None:
        """Check the stored data against the laws."""
        self.acknowledged.update(acknowledged)
        with closing(sqlite3.connect(self.path)) as reader:
            if not reader.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                assert not self.acknowledged, "an acknowledged store is not there"
                return
            assert reader.execute("PRAGMA quick_check").fetchone() == ("ok",)
            for key, session_id, last in reader.execute(
                "SELECT key, session_id, last FROM sessions"
            ).fetchall():
                wanted = self.acknowledged.get(session_id, 0)
                assert last >= wanted, f"{session_id}: {wanted} acknowledged, {last} stored"
                self._examine_events(reader, key, session_id, last)
            self._examine_runs(reader)

    def _examine_events(
        self, reader: sqlite3.Connection, key: int, session_id: str, last: int
    ) -> None:
        seen = self.seen.get(key, 0)
        assert last >= seen, f"{session_id}: {seen} was there, now {last}"
        rows = reader.execute(
            "SELECT seq, body FROM events WHERE session = ? AND seq > ? ORDER BY seq", (key, seen)
        ).fetchall()
        assert all(record == body(session_id, seq) for seq, record in rows), session_id
        pruned = {
            seq
            for first, end in reader.execute(
                "SELECT first, last FROM holes WHERE session = ?", (key,)
            )
            for seq in range(first, end + 1)
        }
        numbers = [seq for seq, _ in rows]
        wanted = [seq for seq in range(seen + 1, last + 1) if seq not in pruned]
        assert numbers == wanted, f"{session_id}: gap or double"
        self.seen[key] = last

    def _examine_runs(self, reader: sqlite3.Connection) -> None:
        wrong = reader.execute(
            "SELECT run_id, status, count(events.id) AS ends, max(type) FROM runs LEFT JOIN events"
            f" ON events.session = runs.session AND events.seq = runs.terminal AND"
            f" events.run = runs.key AND type IN {TERMINAL}"
            " GROUP BY runs.key HAVING ends != (status NOT IN ('pending', 'running'))"
            " OR ends = 1 AND max(type) != 'run_' || status"
        ).fetchall()
        assert wrong == [], wrong
        doubles = reader.execute(
            f"SELECT run, count(*) AS ends FROM events WHERE type IN {TERMINAL}"
            " GROUP BY run HAVING ends > 1"
        ).fetchall()
        assert doubles == [], doubles


def main(path: str, kills: int, seed: int) -> None:
    """Kill and examine, repeatedly."""
    chance = random.Random(seed)
    examiner = StoreExaminer(path)
    unheard = 0
    begin = time.monotonic()
    for _ in range(kills):
        found = kill_once(path, chance)
        examiner.examine(found)
        stored = sum(examiner.seen.values())
        unheard += stored - sum(examiner.acknowledged.values())
    figures = {
        "kills": kills,
        "events stored": sum(examiner.seen.values()),
        "stored though the acknowledgement never arrived": unheard,
        "seconds": round(time.monotonic() - begin, 1),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
