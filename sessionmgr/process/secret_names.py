"""Names of variables, headers and options that hold secrets.

A name is split into words at characters other than letters and digits, and at a capital after a
small letter: `SECRET_KEY_BASE`, `X-Api-Key` and `bearerToken` alike. Therefore `MONKEY`,
`KEYBOARD` and `TOKENIZERS_PARALLELISM` are not secrets.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

ANYWHERE: Final = frozenset(
    (
        *("KEY", "KEYS", "TOKEN", "SECRET", "SECRETS", "PWD", "BEARER", "SIGNING", "COOKIE"),
        *("COOKIES", "CREDENTIAL", "CREDENTIALS", "CREDS", "AUTHORIZATION", "WEBHOOK", "DSN"),
    )
)
"""Words that indicate a secret anywhere in a name."""

AT_THE_END: Final = frozenset(("AUTH", "PAT", "PASS", "JWT", "SAS"))
"""Words that indicate a secret only as the last word: SSH_AUTH_SOCK is not one."""

WITHIN: Final = re.compile(
    "PASSWORD|PASSWD|PASSPHRASE|PASSCODE|SSHPASS|APIKEY|(?:ACCESS|SECRET|PRIVATE|AUTH)(?:KEY|TOKEN)"
    "|CONNECTION_STRING|CONN_STR|AUTH_(?:HEADER|CONFIG)"
)
"""Parts of a word, or sequences of words, that indicate a secret."""

DESCRIBING: Final = frozenset(
    (
        *("FILE", "PATH", "DIR", "DIRECTORY", "NAME", "TYPE", "TTL", "EXPIRY", "EXPIRES"),
        *("LIMIT", "LENGTH", "SIZE", "COUNT", "DOMAIN", "VAR", "ENV", "HELPER", "COMMAND"),
        *("PREFIX", "ALGORITHM", "MODE", "INSTRUCTIONS", "HOST", "PORT", "MS", "SECONDS"),
    )
)
"""Last words that describe a secret: its place or its name."""

PLACES: Final = frozenset(("URL", "URI", "ENDPOINT"))
"""The same, unless the place itself is the secret, such as a webhook's address."""

NO_SECRETS: Final = frozenset(("PWD", "OLDPWD", "GOOGLE_APPLICATION_CREDENTIALS"))
"""Directories, and the path of a file."""

_CAMEL: Final = re.compile("(?<=[a-z0-9])(?=[A-Z])")
_WORD: Final = re.compile("[A-Z0-9]+")


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Return whether a name, in any case, indicates a secret."""
    words = _WORD.findall(_CAMEL.sub("_", name).upper())
    if not words or "_".join(words) in NO_SECRETS:
        return False
    known, last = ANYWHERE.intersection(words), words[-1]
    if last in DESCRIBING or (last in PLACES and not known & {"WEBHOOK", "DSN"}):
        return False
    return bool(known) or last in AT_THE_END or WITHIN.search("_".join(words)) is not None
