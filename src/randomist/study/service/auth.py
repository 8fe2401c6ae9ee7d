"""Who may do what: bearer tokens, each with a scope, perhaps an end and some studies. Only their hashes are kept."""

from __future__ import annotations

import fnmatch
import hashlib
import hmac
import logging
import os
import re
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from randomist.errors import ParameterError

Scope = Literal["read", "work", "admin"]
SCOPES: tuple[Scope, ...] = ("read", "work", "admin")  # each may do what those before it may
SHORTEST = 16
LOOK = 0.5  # seconds between looks at the file of tokens: a stream ends within a second of its token
NEEDED = "a bearer token is needed that has not ended; send Authorization: Bearer TOKEN"
PATTERN = re.compile(r"[A-Za-z0-9._*-]{1,64}")


@dataclass(frozen=True)
class Holder:
    """Who a request comes from."""

    name: str  # the beginning of the token's hash
    scope: Scope
    label: str | None = None  # what it is called in the file of tokens
    until: float | None = None  # seconds since 1970
    studies: tuple[str, ...] = ()  # patterns of names; none means all

    def may(self, scope: Scope) -> bool:
        return SCOPES.index(self.scope) >= SCOPES.index(scope)

    def may_see(self, study: str) -> bool:
        """Whether a study is one of its studies."""
        return not self.studies or any(fnmatch.fnmatchcase(study, pattern) for pattern in self.studies)


class Tokens:
    """Tokens and their scopes; with `public_read`, reading needs none.

    A scope may be followed by words: "work until=2027-01-31 studies=car,ads-* name=web".
    """

    def __init__(self, tokens: Mapping[str, str], *, public_read: bool = False) -> None:
        self._holders = _holders(tokens)
        if not self._holders and not public_read:
            raise ParameterError("a service needs at least one token; make them with Tokens.generate()")
        self.public_read = public_read
        self._file: Path | None = None
        self._seen: tuple[int, int] = (0, 0)
        self._looked = 0.0
        self._looking = threading.Lock()

    @classmethod
    def read(cls, path: Path, *, public_read: bool = False) -> Tokens:
        """A file of lines `SCOPE TOKEN`, each perhaps with `until=`, `studies=` and `name=`; # begins a comment line.

        The file is looked at again when it changes, so tokens come and go without a restart. A file that cannot be read
        leaves the tokens as they were.
        """
        seen = _version(path)
        found = cls(_lines(path), public_read=public_read)
        found._file, found._seen = path, seen
        return found

    @staticmethod
    def generate() -> dict[str, str]:
        """A fresh token of each scope."""
        return {secrets.token_urlsafe(24): scope for scope in SCOPES}

    def holder(self, header: str | None) -> Holder | None:
        """Whose `Authorization` header this is; None where it is nobody's, or the token's time is over."""
        if header is None:
            return Holder("public", "read") if self.public_read else None
        kind, _, token = header.partition(" ")
        if kind.lower() != "bearer":
            return None
        self._look()
        digest, found = _digest(token.strip()), None
        for known, holder in self._holders.items():  # all of them, so that time tells nothing
            if hmac.compare_digest(known, digest):
                found = holder
        return None if found is None or (found.until is not None and found.until <= time.time()) else found

    def _look(self) -> None:
        """Read the file again where it has changed."""
        if self._file is None or time.monotonic() - self._looked < LOOK or not self._looking.acquire(blocking=False):
            return
        try:
            self._looked = time.monotonic()
            seen = _version(self._file)
            if seen != self._seen:
                self._seen = seen
                holders = _holders(_lines(self._file))
                if not holders and not self.public_read:
                    raise ParameterError(f"{self._file} has no tokens")
                self._holders = holders
        except (OSError, ValueError) as error:
            logging.getLogger("randomist.service").error("the file of tokens is left aside: %s", error)
        finally:
            self._looking.release()


def _holders(tokens: Mapping[str, str]) -> dict[bytes, Holder]:
    found = {}
    for token, words in tokens.items():
        if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
            raise ParameterError(f"a token has at least {SHORTEST} printable characters without blanks")
        digest = _digest(token)
        found[digest] = _holder(digest.hex()[:8], words)
    return found


def _holder(name: str, words: str) -> Holder:
    """What a scope and the words behind it say."""
    scope, *rest = words.split() or [""]
    if scope not in SCOPES:
        raise ParameterError(f"a token's scope is {', '.join(SCOPES)}; got {scope!r:.80}")
    label, until, studies = None, None, tuple[str, ...]()
    for word in rest:
        key, _, value = word.partition("=")
        if key == "until":
            until = _moment(value)
        elif key == "studies" and all(PATTERN.fullmatch(part) for part in value.split(",")):
            studies = tuple(value.split(","))
        elif key == "name" and re.fullmatch(r"[A-Za-z0-9._-]{1,24}", value):
            label = value
        else:
            raise ParameterError(
                f"behind a token's scope come until=2027-01-31, studies=car,ads-* and name=web; got {word!r:.80}"
            )
    return Holder(name, SCOPES[SCOPES.index(scope)], label, until, studies)


def _moment(text: str) -> float:
    """A day, which ends the token when it begins, or a moment, in UTC unless it says otherwise."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ParameterError(f"until= is a day or a moment, such as 2027-01-31T12:00Z; got {text!r:.80}") from None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def _lines(path: Path) -> dict[str, str]:
    tokens: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) < 2:
            raise ParameterError(
                f"line {number} of {path} must be SCOPE TOKEN, and until=, studies=, name= where wanted"
            )
        tokens[words[1]] = " ".join([words[0], *words[2:]])
    return tokens


def _version(path: Path) -> tuple[int, int]:
    """Changes when the file does."""
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
