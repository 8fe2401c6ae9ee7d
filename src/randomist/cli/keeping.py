"""Housekeeping of studies from the shell: take tells back, archive, rename, delete, check, and who did what."""

from __future__ import annotations

from typing import Annotated

import typer

from randomist.cli.studies import STORAGE, Name, StorageUrl, Worker, load, say, study_app
from randomist.errors import ParameterError


@study_app.command()
def retract(
    name: Name,
    trial: Annotated[int, typer.Argument(help="The trial's id.")],
    reason: Annotated[str, typer.Option(help="Why it does not count any more.")] = "",
    worker: Worker = None,
    storage: StorageUrl = STORAGE,
) -> None:
    """Take a tell back: its row stays, marked, and does not count any more. The same again changes nothing.

    Example: randomist study retract car 7 --reason "the wrong units"
    """
    load(name, storage, worker).retract(trial, reason)
    say({"id": trial, "state": "retracted"})


@study_app.command()
def archive(name: Name, worker: Worker = None, storage: StorageUrl = STORAGE) -> None:
    """Make a study read-only: asks, tells and changes are refused, for everybody."""
    load(name, storage, worker).archive()
    say({"name": name, "archived": True})


@study_app.command()
def unarchive(name: Name, worker: Worker = None, storage: StorageUrl = STORAGE) -> None:
    """Open an archived study again."""
    load(name, storage, worker).unarchive()
    say({"name": name, "archived": False})


@study_app.command()
def rename(
    name: Name,
    new: Annotated[str, typer.Argument(help="Its new name.")],
    worker: Worker = None,
    storage: StorageUrl = STORAGE,
) -> None:
    """Give a study another name. Who loads it needs the new one."""
    load(name, storage, worker).rename(new)
    say({"name": new})


@study_app.command()
def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Really: nothing brings it back but a backup.")] = False,
    worker: Worker = None,
    storage: StorageUrl = STORAGE,
) -> None:
    """Forget a study and all of its trials, for good. `archive` keeps it, and `export` writes it to a file.

    Example: randomist study delete car --yes
    """
    from randomist.study import delete_study

    if not yes:
        raise ParameterError(f"this forgets all trials of {name!r}, for good; say --yes if you mean it")
    delete_study(name, storage=storage, worker=worker)
    say({"deleted": name})


@study_app.command()
def audit(name: Name, storage: StorageUrl = STORAGE) -> None:
    """Print who did what to a study, besides asking and telling, in order."""
    say([entry._asdict() for entry in load(name, storage).audit()])


@study_app.command()
def verify(
    name: Annotated[str | None, typer.Argument(help="The study's name; without it, all of them.")] = None,
    storage: StorageUrl = STORAGE,
) -> None:
    """Look at every row, and say what is wrong with each. Workers may run. The exit code is 1 where something is.

    Example: randomist study verify --storage sqlite:///studies.db
    """
    from randomist.study.storages import open_storage
    from randomist.study.verifying import verify as verify_study

    place = open_storage(storage)
    found = [verify_study(place, one) for one in ([name] if name is not None else place.names())]
    say([one._asdict() for one in found])
    if any(one.problems for one in found):
        raise typer.Exit(1)
