"""Rules of the user's that let commands out of the sandbox, unasked and in every mode.

Codex reads them from files beside its configuration, where its own screen writes one for each
"do not ask again". An app-server cannot be told to leave them alone; `codex exec` can.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

SYSTEM: Final = Path("/etc/codex")
_COMMENT: Final = re.compile(r"#.*")
_RULE: Final = re.compile(r"\b(?:prefix_rule|network_rule)\s*\(")
_STRICT: Final = re.compile(r"""\bdecision\s*=\s*["'](?:prompt|forbidden|deny)["']""")


def loose_rules(home: Path, cwd: Path) -> Path | None:
    """Return a file whose rules allow something, of those that Codex may read in `cwd`.

    A rule that does not say what it decides allows. Whether Codex trusts a project, and reads its
    rules, is not looked at.
    """
    places = [home, SYSTEM, *(each / ".codex" for each in (cwd, *cwd.parents))]
    for place in places:
        for file in sorted((place / "rules").glob("*.rules")):
            if _allows(file):
                return file
    return None


def _allows(file: Path) -> bool:
    try:
        text = _COMMENT.sub("", file.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return False  # Codex cannot read it either
    return len(_RULE.findall(text)) > len(_STRICT.findall(text))
