"""The recorder's program: it runs between an adapter and its agent, and records their traffic.

    python recorder.py FILE ARGV...

This file needs the standard library only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from typing import IO, Any


class PipeRecorder:
    """Copies three pipes line by line, and records the lines."""

    def __init__(self, file: IO[str]) -> None:
        self.file = file
        self.began = time.monotonic()
        self.lock = threading.Lock()

    def note(self, direction: str, line: bytes) -> None:
        """Record one line."""
        entry: dict[str, Any] = {"t": 0.0, "dir": direction}
        try:
            entry["msg"] = json.loads(line)
        except ValueError:
            entry["line"] = line.decode("utf-8", "replace").rstrip("\n")
        with self.lock:  # times and lines must have the same order
            entry["t"] = round(time.monotonic() - self.began, 3)
            self.file.write(json.dumps(entry) + "\n")
            self.file.flush()

    def copy(self, direction: str, source: IO[bytes], sink: int) -> None:
        """Copy one pipe to its end."""
        for line in source:
            self.note(direction, line)
            try:
                os.write(sink, line)
            except BrokenPipeError:
                break


def main(path: str, argv: list[str]) -> int:
    """Run the agent, and record it."""
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
        recorder = PipeRecorder(file)
        recorder.note("#", json.dumps({"argv": argv}).encode())
        agent = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert agent.stdin is not None
        assert agent.stdout is not None
        assert agent.stderr is not None
        readers = [
            threading.Thread(target=recorder.copy, args=("<", agent.stdout, 1)),
            threading.Thread(target=recorder.copy, args=("!", agent.stderr, 2)),
        ]
        for reader in readers:
            reader.start()
        teller = agent.stdin

        def tell() -> None:
            recorder.copy(">", sys.stdin.buffer, teller.fileno())
            teller.close()

        threading.Thread(target=tell, daemon=True).start()
        for reader in readers:
            reader.join()
        return agent.wait()


if __name__ == "__main__":
    code = main(sys.argv[1], sys.argv[2:])
    os._exit(code if code >= 0 else 128 - code)
