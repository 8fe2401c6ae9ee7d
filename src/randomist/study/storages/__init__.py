"""Where studies live. A storage of your own is a class of `Storage` in a file, and `module:Class` in its URL."""

from __future__ import annotations

import re
from typing import Any

from randomist._lookup import is_foreign, known, named, ours
from randomist.errors import StorageError
from randomist.study.storages.base import PATIENCE, Storage

__all__ = ["STORAGES", "Storage", "open_storage"]

# From the scheme of a URL to where its class lives, which is imported on first use.
STORAGES = {
    "sqlite": "randomist.study.storages.sql.storage:SQLStorage",
    "postgresql": "randomist.study.storages.sql.storage:SQLStorage",
    "postgres": "randomist.study.storages.sql.storage:SQLStorage",
    "memory": "randomist.study.storages.memory:MemoryStorage",
}


def open_storage(storage: str | Storage, patience: float = PATIENCE) -> Storage:
    """The storage of a URL: `sqlite:///study.db`, `postgresql://user@host/name`, `memory://name`.

    `package.module:Class://anything` is one that is not ours: the class is called with the whole URL.
    """
    if isinstance(storage, Storage):
        return storage
    cls = _storage_class(storage)
    return cls(storage, patience=patience)


def _storage_class(url: Any) -> type[Storage]:
    scheme, found, _ = url.partition("://") if isinstance(url, str) else ("", "", "")
    where = STORAGES.get(scheme.partition("+")[0])
    if where is None and found and (is_foreign(scheme) or known(scheme, Storage) is not None):
        yours: type[Storage] = named(scheme, Storage, "storage", STORAGES)
        return yours
    if not found or where is None:
        kind = f" for {scheme}" if found and re.fullmatch(r"[\w.+-]+", scheme) else ""  # no password gets in
        raise StorageError(
            f"no storage is known{kind}; give a URL such as sqlite:///study.db, postgresql://user:password@host/name "
            "or memory://name"
        )
    try:
        cls: type[Storage] = ours(where)
    except ImportError as error:
        raise ImportError(f"{scheme}:// needs the `study` extra ({error}); pip install 'randomist[study]'") from error
    return cls
