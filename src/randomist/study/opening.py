"""How one comes by a study: made, loaded, found by name."""

from __future__ import annotations

from randomist.errors import ParameterError, StudyExistsError
from randomist.learners.base import Learner
from randomist.study import replay
from randomist.study.checks import check_lease, check_name, check_worker
from randomist.study.storages import open_storage
from randomist.study.storages.base import PATIENCE, Storage
from randomist.study.study import Study

LEASE = 3600.0  # seconds


def create_study(
    name: str,
    learner: Learner,
    *,
    storage: str | Storage,
    lease: float = LEASE,
    worker: str | None = None,
    exist_ok: bool = False,
    patience: float = PATIENCE,
    by: str | None = None,
) -> Study:
    """A new study of a fresh learner, in `sqlite:///study.db`, `postgresql://user@host/name` or `memory://name`.

    `lease` is how many seconds a worker has until its trial counts as stale. With `exist_ok=True` a study of the same
    name and the same learner is loaded, so that every worker can run the same script. `patience` is how many seconds to
    wait for a storage that is busy or away. `by` is who creates it, for the record; by default the worker.
    """
    check_name(name)
    if not isinstance(learner, Learner):
        raise ParameterError(f"a study is made of a learner, got {type(learner).__name__}")
    if not learner.record.keep:
        raise ParameterError("a study keeps what `ask` draws and `tell` is told; leave keep_record at True")
    text = replay.describe(learner)
    if not replay.is_fresh(learner, replay.fresh(name, text)):
        raise ParameterError("a study begins with a fresh learner, this one was asked or told before; make a new one")
    place = open_storage(storage, patience)
    try:
        record = place.create(name, text, check_lease(lease))
    except StudyExistsError:
        if not exist_ok:
            raise
        record = place.find(name)
        if replay.describe(replay.fresh(name, record.learner)) != text:
            raise StudyExistsError(
                f"study {name!r} exists with another learner or other settings; take another name, or load_study"
            ) from None
    else:
        place.note(record.id, check_worker(by or worker), "create", {"name": name})
    return Study(place, record, worker)


def load_study(name: str, *, storage: str | Storage, worker: str | None = None, patience: float = PATIENCE) -> Study:
    """A study that was created before, by whichever process."""
    place = open_storage(storage, patience)
    return Study(place, place.find(check_name(name)), worker)


def delete_study(name: str, *, storage: str | Storage, worker: str | None = None, patience: float = PATIENCE) -> None:
    """Forget a study and all of its trials, for good. The name is free then; who still has the study is refused."""
    place = open_storage(storage, patience)
    place.delete(place.find(check_name(name)).id, check_worker(worker))


def study_names(storage: str | Storage) -> list[str]:
    """The studies of a storage, the oldest first."""
    return open_storage(storage).names()
