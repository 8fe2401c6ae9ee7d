"""Keep compiled code true to its sources.

numba caches a compiled function beside its file and compiles it again when that file changes, but not when a function
that it calls, from another file, does. So on import the sources of the whole package are compared with those that the
cache was made from, and a stale cache is thrown away.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

PACKAGE = Path(__file__).parent


def drop_stale_cache(package: Path = PACKAGE) -> bool:
    """Remove the compiled functions of `package` if a source changed since; True if they were removed."""
    stamp = package / "__pycache__" / "compiled.stamp"
    digest = hashlib.sha256()
    for source in sorted(package.rglob("*.py")):
        status = source.stat()
        digest.update(f"{source.relative_to(package)} {status.st_mtime_ns} {status.st_size}\n".encode())
    current = digest.hexdigest()
    if stamp.exists() and stamp.read_text() == current:
        return False
    with contextlib.suppress(OSError):  # a package that cannot be written has no cache beside it either
        for compiled in (*package.rglob("__pycache__/*.nbi"), *package.rglob("__pycache__/*.nbc")):
            compiled.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(current)
    return True


drop_stale_cache()  # on import, which is the first thing that the package does
