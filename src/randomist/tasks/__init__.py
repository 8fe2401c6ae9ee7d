"""Where payoffs come from: the paper's tasks, any Gymnasium environment, and your own. `task(id)` finds them."""

from typing import TYPE_CHECKING

from randomist._lookup import lazy
from randomist.tasks.base import ControlTask, Task, register_prefix, task, task_ids

if TYPE_CHECKING:
    from randomist.tasks.bandits import Bernoulli as Bernoulli
    from randomist.tasks.cartpole import Cartpole as Cartpole
    from randomist.tasks.environments import ContinuousCartPoleEnv as ContinuousCartPoleEnv
    from randomist.tasks.environments import LQGEnv as LQGEnv
    from randomist.tasks.gym import GymnasiumTask as GymnasiumTask
    from randomist.tasks.gym import gymnasium as gymnasium
    from randomist.tasks.illustrative import Illustrative as Illustrative
    from randomist.tasks.lower_bounds import ConstantRegretPair as ConstantRegretPair
    from randomist.tasks.lower_bounds import FollowTheLeaderTrap as FollowTheLeaderTrap
    from randomist.tasks.lower_bounds import Jackpot as Jackpot
    from randomist.tasks.lower_bounds import LogarithmicRegretPair as LogarithmicRegretPair
    from randomist.tasks.lower_bounds import RareLoss as RareLoss
    from randomist.tasks.lqg import LQG as LQG
    from randomist.tasks.mountain_car import MountainCar as MountainCar
    from randomist.tasks.vector import VectorTask as VectorTask

_NAMES = {
    "bandits": "Bernoulli",
    "cartpole": "Cartpole",
    "environments": "ContinuousCartPoleEnv LQGEnv",
    "gym": "GymnasiumTask gymnasium",
    "illustrative": "Illustrative",
    "lower_bounds": "ConstantRegretPair FollowTheLeaderTrap Jackpot LogarithmicRegretPair RareLoss",
    "lqg": "LQG",
    "mountain_car": "MountainCar",
    "vector": "VectorTask",
}
_HOMES = {name: f"randomist.tasks.{home}" for home, names in _NAMES.items() for name in names.split()}

__all__ = ["ControlTask", "Task", "register_prefix", "task", "task_ids", *_HOMES]
__getattr__, __dir__ = lazy(__name__, _HOMES)
