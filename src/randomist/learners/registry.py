"""The table of learners, and the one factory: for Python, the command line, TOML, studies and the service.

A new learner is its file and one line of `TABLE`. A learner that is not ours is named by where it is defined,
"my_package.my_module:MyLearner"; see `_lookup` for who may name what.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from randomist import _lookup
from randomist._lookup import ours
from randomist.errors import ParameterError, RandomistError, TaskError

if TYPE_CHECKING:
    from randomist.learners.base import Learner

LearnerLike: TypeAlias = "str | Callable[..., Learner]"
Line: TypeAlias = str | tuple[float, tuple[float, ...]]  # as matplotlib writes it: "-", or (offset, dashes)


class Look(NamedTuple):
    """How a learner is drawn. Colours are Okabe and Ito's; line and marker tell learners apart without colour."""

    colour: str = "#333333"
    line: Line = "-"
    marker: str = "."


class Entry(NamedTuple):
    """A line of the table."""

    where: str  # "module:Class", below `randomist.learners`; the folder says what kind of space it searches
    title: str
    look: Look = Look()
    variants: Mapping[str, Look] = {}  # looks of the same learner with another setting, "name=value"

    @property
    def kind(self) -> str:
        """The spaces that it searches: "finite" or "box"."""
        return self.where.partition(".")[0]

    @property
    def class_name(self) -> str:
        return self.where.partition(":")[2]

    @property
    def place(self) -> str:
        return f"randomist.learners.{self.where}"

    def load(self) -> type[Learner]:
        found: type[Learner] = ours(self.place)
        return found


# fmt: off
TABLE = {
    "ftl": Entry("finite.ftl:FollowTheLeader", "FTL", Look("#000000", (0, (5, 1.5)), "x")),
    "optimist": Entry("finite.optimist:Optimist", "OPTIMIST", Look("#D55E00", "-", "^")),
    "randomist": Entry("finite.randomist:Randomist", "RANDOMIST", Look("#0072B2", "-", "o"), {
        "perturbation_scale=1.1": Look("#56B4E9", "-", "s"),
    }),
    "realist": Entry("finite.realist:Realist", "REALIST", Look("#882255", "-", "*")),
    "identify": Entry("finite.identify:Identify", "IDENTIFY"),
    "safe": Entry("finite.safe:Safe", "SAFE"),
    "ucb1": Entry("finite.ucb1:UCB1", "UCB1", Look("#009E73", (0, (3, 1, 1, 1)), "D")),
    "phe": Entry("finite.phe:PerturbedHistory", "PHE", Look("#CC79A7", (0, (5, 1, 1, 1, 1, 1)), "v")),
    "thompson": Entry("finite.thompson:ThompsonSampling", "TS", Look("#E69F00", (0, (1.5, 1)), "P")),
    "kl-ucb": Entry("finite.klucb:KLUCB", "KL-UCB", Look("#117733", (0, (1, 1)), "<")),
    "stochastic-experts": Entry(
        "finite.stochastic_experts:StochasticExperts", "D-UCB", Look("#882255", (0, (6, 2)), "h"),
    ),
    "gp-ucb": Entry("finite.gp_ucb:GPUCB", "GP-UCB", Look("#7F7F7F", (0, (4, 2)), "*")),
    "mcmc-randomist": Entry("box.mcmc_randomist:MCMCRandomist", "MCMC-RANDOMIST", Look("#0072B2", "-", "o"), {
        "density=one-step": Look("#56B4E9", "-", "s"),
        "bias_correction=paper": Look("#003E6B", (0, (5, 1.5)), "X"),
    }),
    "pgpe": Entry("box.pgpe:PGPE", "PGPE", Look("#009E73", "-", "D"), {
        "step_size=1.0": Look("#009E73", (0, (1.5, 1)), "v"),
        "step_size=100.0": Look("#009E73", (0, (5, 1, 1, 1)), "P"),
    }),
    "pois": Entry("box.pois:POIS", "PB-POIS", Look("#CC79A7", (0, (3, 1, 1, 1)), "*")),
    "grid-optimist": Entry("box.grid_optimist:GridOptimist", "OPTIMIST2", Look("#D55E00", "-", "^")),
    "prospector": Entry("box.prospector:Prospector", "PROSPECTOR"),
    "auto": Entry("box.auto:Auto", "Auto", Look("#882255", "-", "*")),
}
# fmt: on


class Learners(Mapping[str, "type[Learner]"]):
    """Our learners by name; a class is imported when it is looked up."""

    def __getitem__(self, name: str) -> type[Learner]:
        return TABLE[name].load()

    def __contains__(self, name: object) -> bool:
        return name in TABLE

    def __iter__(self) -> Iterator[str]:
        return iter(TABLE)

    def __len__(self) -> int:
        return len(TABLE)

    def __repr__(self) -> str:
        return f"<learners: {', '.join(TABLE)}>"


LEARNERS = Learners()


# Names.

CLASSES = {entry.class_name: name for name, entry in TABLE.items()}  # in saved states
NAMES = (*TABLE, *CLASSES)


def check(name: Any) -> str:
    """The name of a learner, as it is; ours are not imported for that."""
    if not (isinstance(name, str) and name in TABLE):
        find(name)
    return str(name)


def find(name: Any) -> type[Learner]:
    """The class of this name: one of the table, or one that is not ours."""
    from randomist.learners.base import Learner

    known = isinstance(name, str) and name in TABLE
    found: type[Learner] = TABLE[name].load() if known else _lookup.named(name, Learner, "learner", TABLE)
    return found


@_lookup.reading()
def class_named(name: Any) -> type[Learner]:
    """The class that a saved state names: "Randomist" for one of ours, "module:Class" for another."""
    return find(CLASSES.get(name, name) if isinstance(name, str) else None)


def name_of(cls: type[Learner]) -> str:
    """What a saved state calls this class; undone by `class_named`."""
    return _lookup.name_of(cls)


def title(name: str) -> str:
    """How a learner is written in tables and figures."""
    return TABLE[name].title if name in TABLE else name.rpartition(":")[2]


def look(name: str, settings: Mapping[str, Any] | None = None) -> Look:
    """How a learner of these settings is drawn; the last setting with a look of its own decides."""
    entry = TABLE.get(name)
    if entry is None:
        return Look()
    chosen = [f"{key}={value}" for key, value in (settings or {}).items()]
    return next((entry.variants[pair] for pair in reversed(chosen) if pair in entry.variants), entry.look)


# The factory.


def make(learner: LearnerLike, place: Any = None, /, *, space: Any = None, **settings: Any) -> Learner:
    """A learner by name or class, for a space or a task.

    `learner` is a name of the table, "module:Class", a class, or anything that is called like one. `place` is where it
    searches: a space; a task, whose space, payoff range and first decision it takes unless `space` or `settings` say
    otherwise; or nothing, for learners that need no more than their settings (`Auto(low=..., high=...)`).
    """
    return made(learner, place, settings, space)


def made(learner: LearnerLike, place: Any, settings: Mapping[str, Any], space: Any = None) -> Learner:
    """`make` of settings that may have any names: a user's are one mapping, never keywords beside ours."""
    settings = dict(settings)
    made_by = find(learner) if isinstance(learner, str) else learner
    known = _settings_of(made_by)
    if known is not None and (unknown := set(settings) - known.keys()):
        raise ParameterError(
            f"{_word(made_by)} has no setting {', '.join(sorted(unknown))}; it has {', '.join(sorted(known))}"
        )
    if isinstance(settings.get("payoff_range"), list):  # JSON and TOML have no tuples
        settings["payoff_range"] = tuple(settings["payoff_range"])
    if hasattr(place, "payoff_range"):  # a task; spaces have none
        space, settings = _for_task(place, made_by, known or {}, space, settings)
    else:
        space = place if space is None else space
    try:
        return made_by(space, **settings)
    except RandomistError:
        raise
    except Exception as error:  # whatever settings make a class raise, they are the reason
        raise ParameterError(f"{_word(made_by)} cannot be made of these settings: {_line(error)}") from error


def takes(learner: LearnerLike, setting: str) -> bool:
    """Whether a learner, by name or class, has a setting of this name."""
    return setting in (_settings_of(find(learner) if isinstance(learner, str) else learner) or {})


def _for_task(
    task: Any, learner: Any, known: Mapping[str, Any], space: Any, settings: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """The space, and the settings that follow from the task, those that were given first."""
    given: dict[str, Any] = {}
    policy = getattr(task, "policy", None)
    where = task.space if space is None else space
    if where is None:
        if "dimension" not in known:
            raise TaskError(
                f"task {task.id!r} does not fix where to search; give low, high and std to it, or space= a Box or a "
                "Finite"
            )
        if policy is not None and not {"low", "high", "dimension"} & settings.keys():
            given["dimension"] = policy.size
    if not getattr(learner, "learns_range", False):
        unknown = policy is not None and math.isinf(task.payoff_range[0])  # of returns: learn it
        given["payoff_range"] = "running" if unknown else task.payoff_range
        given["out_of_range"] = task.out_of_range
    if where is not None and where is task.space and task.first is not None:
        given["first"] = task.first
    return where, given | settings


def _settings_of(learner: Any) -> dict[str, Any] | None:
    """The fields of a learner's class by name, but for its space; None of a function."""
    if not (isinstance(learner, type) and dataclasses.is_dataclass(learner)):
        return None
    return {field.name: field for field in dataclasses.fields(learner) if field.init and field.name != "space"}


def _word(learner: Any) -> str:
    return getattr(learner, "__name__", None) or repr(learner)[:60]  # a functools.partial has no name


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
