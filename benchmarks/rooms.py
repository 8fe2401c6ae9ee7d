"""Lines of `src/randomist`, folder by folder: `python -m benchmarks.rooms [COMMIT]`."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
HOUSE = "src/randomist"


def lines_now() -> Counter[str]:
    """Lines per folder of the working tree; a file at the top counts for itself."""
    files = (ROOT / HOUSE).rglob("*.py")
    return _summed({path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files})


def lines_at(commit: str) -> Counter[str]:
    """The same of a commit."""
    names = _git("ls-tree", "-r", "--name-only", commit, HOUSE).splitlines()
    return _summed({name: _git("show", f"{commit}:{name}") for name in names if name.endswith(".py")})


def _summed(texts: dict[str, str]) -> Counter[str]:
    rooms: Counter[str] = Counter()
    for name, text in texts.items():
        room = PurePosixPath(name).relative_to(HOUSE).parts[0]
        rooms[room] += text.count("\n")
    return rooms


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def main() -> None:
    commit = sys.argv[1] if len(sys.argv) > 1 else None
    before, now = (lines_at(commit) if commit else Counter()), lines_now()
    print(f"{'':16}{commit[:10] if commit else '':>10}{'now':>10}")
    for room in sorted({*before, *now}, key=lambda room: (room.endswith(".py"), room)):
        print(f"{room:16}{before[room] or '':>10}{now[room] or '':>10}")
    print(f"{'all':16}{before.total() or '':>10}{now.total():>10}")


if __name__ == "__main__":
    main()
