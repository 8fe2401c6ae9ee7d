"""Who may do what: bearer tokens, each with a scope. Only hashes of tokens are kept."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from randomist.errors import ParameterError

Scope = Literal["read", "work", "admin"]
SCOPES: tuple[Scope, ...] = ("read", "work", "admin")  # each may do what those before it may
SHORTEST = 16


@dataclass(frozen=True)
class Holder:
    """Who a request comes from."""

    name: str  # the beginning of the token's hash
    scope: Scope

    def may(self, scope: Scope) -> bool:
        return SCOPES.index(self.scope) >= SCOPES.index(scope)


class Tokens:
    """Tokens and their scopes; with `public_read`, reading needs none."""

    def __init__(self, tokens: Mapping[str, str], *, public_read: bool = False) -> None:
        self._holders: dict[bytes, Holder] = {}
        for token, scope in tokens.items():
            if scope not in SCOPES:
                raise ParameterError(f"a token's scope is {', '.join(SCOPES)}; got {scope!r}")
            if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
                raise ParameterError(f"a token has at least {SHORTEST} printable characters without blanks")
            digest = _digest(token)
            self._holders[digest] = Holder(digest.hex()[:8], scope)
        if not self._holders and not public_read:
            raise ParameterError("a service needs at least one token; make them with Tokens.generate()")
        self.public_read = public_read

    @classmethod
    def read(cls, path: Path, *, public_read: bool = False) -> Tokens:
        """A file of lines `SCOPE TOKEN`; empty lines and those that begin with # are skipped."""
        tokens: dict[str, str] = {}
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) != 2:
                raise ParameterError(f"line {number} of {path} must be SCOPE TOKEN")
            tokens[words[1]] = words[0]
        return cls(tokens, public_read=public_read)

    @staticmethod
    def generate() -> dict[str, str]:
        """A fresh token of each scope."""
        return {secrets.token_urlsafe(24): scope for scope in SCOPES}

    def holder(self, header: str | None) -> Holder | None:
        """Whose `Authorization` header this is; None where it is nobody's."""
        if header is None:
            return Holder("public", "read") if self.public_read else None
        kind, _, token = header.partition(" ")
        if kind.lower() != "bearer":
            return None
        digest, found = _digest(token.strip()), None
        for known, holder in self._holders.items():  # all of them, so that time tells nothing
            if hmac.compare_digest(known, digest):
                found = holder
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
