"""What a verb prints on stdout, where the reader may have had enough before the end."""

import os
import sys


def print_all(text: str) -> None:
    """Print `text` and a newline. A reader that has gone (`| head`) is no error."""
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes once more at its end; let it find somebody who listens.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
