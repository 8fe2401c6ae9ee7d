"""Who did what to a study: rows, checked, as users read them."""

from __future__ import annotations

import json
import math

from randomist.errors import StudyDataError
from randomist.study.records import AuditEntry, AuditRow


def read_audit(study: str, row: AuditRow) -> AuditEntry:
    """A row of the record, checked."""
    try:
        detail = json.loads(row.detail)
        texts = isinstance(row.who, str) and isinstance(row.what, str)
        if texts and isinstance(detail, dict) and isinstance(row.at, float) and math.isfinite(row.at):
            return AuditEntry(row.at, row.who, row.what, detail)
    except (TypeError, ValueError, RecursionError):
        pass
    raise StudyDataError(
        f"the record of who did what in study {study!r} (a row of randomist_audit) was changed: {tuple(row)!r:.120}; "
        "repair the row or restore a backup"
    )
