"""Files that a user names: regular ones only, since a pipe or a device would keep us waiting, or never end."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from randomist.errors import RandomistError

LARGEST = 2**28  # bytes of a file that is read as a whole

_KINDS = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder"}


def check_regular(path: str | Path, error: type[RandomistError]) -> os.stat_result:
    """What is known of a file that can be read; FileNotFoundError where there is none."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except (OSError, ValueError) as cause:  # a loop of links, a name with a zero byte
        raise error(f"{path} cannot be read: {cause}") from cause
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "a device")
        raise error(f"{path} cannot be read: it is {kind}, and a file is needed; save its content as one")
    if not os.access(path, os.R_OK):
        raise error(f"{path} cannot be read: permission denied; ask its owner, or copy it as someone who may")
    return found


def read_text(path: str | Path, error: type[RandomistError], largest: int = LARGEST) -> str:
    """All of a file in UTF-8."""
    size = check_regular(path, error).st_size
    if size > largest:
        raise error(f"{path} cannot be read: it has {size:,} bytes, and at most {largest:,} are expected")
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise error(f"{path} cannot be read: {cause}") from cause
