"""Studies: a learner that survives its process, shared by many workers, served and watched.

`schema` and `database` know SQL, `storage` the rows, `replay` how rows become a learner; `Study` is what a worker
holds. `service` offers it over HTTP, `client` is the other end, `dashboard` shows it.
"""

from randomist.study.records import StudyTrial
from randomist.study.study import Study, create_study, load_study, study_names

__all__ = ["Study", "StudyTrial", "create_study", "load_study", "study_names"]
