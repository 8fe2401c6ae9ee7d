"""The contracts, as functions for your own tests: what a family, a learner, a storage and a task must keep."""

from typing import TYPE_CHECKING

from randomist._lookup import lazy

if TYPE_CHECKING:
    from randomist.testing.family import check_family as check_family
    from randomist.testing.learner import check_learner as check_learner
    from randomist.testing.storage import check_storage as check_storage
    from randomist.testing.task import check_task as check_task

_HOMES = {f"check_{kind}": f"randomist.testing.{kind}" for kind in ("family", "learner", "storage", "task")}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy(__name__, _HOMES)
