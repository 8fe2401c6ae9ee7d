"""Studies: a learner that survives its process, shared by many workers, served and watched.

`storages` keep the rows, `replay` turns them into a learner, a `Replica` is a worker's copy that keeps up with them;
`Study` is what a worker holds. `service` offers it over HTTP, `client` is the other end, `dashboard` shows it.
"""

from typing import TYPE_CHECKING

from randomist._lookup import lazy

if TYPE_CHECKING:
    from randomist.study.opening import create_study as create_study
    from randomist.study.opening import delete_study as delete_study
    from randomist.study.opening import load_study as load_study
    from randomist.study.opening import study_names as study_names
    from randomist.study.records import StudyTrial as StudyTrial
    from randomist.study.storages import open_storage as open_storage
    from randomist.study.study import Study as Study

_HOMES = dict.fromkeys(("create_study", "delete_study", "load_study", "study_names"), "randomist.study.opening")
_HOMES |= {"Study": "randomist.study.study", "StudyTrial": "randomist.study.records"}
_HOMES |= {"open_storage": "randomist.study.storages"}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy(__name__, _HOMES)
