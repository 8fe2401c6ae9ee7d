"""Where payoffs come from. A module that is imported here registers its tasks: `task(id)` finds them."""

from randomist.tasks.base import ControlTask, Task, register, register_prefix, task, task_ids
from randomist.tasks.cartpole import Cartpole
from randomist.tasks.environments import ContinuousCartPoleEnv, LQGEnv
from randomist.tasks.gymnasium import GymnasiumTask, gymnasium
from randomist.tasks.illustrative import Illustrative
from randomist.tasks.lower_bounds import ConstantRegretPair, FollowTheLeaderTrap, LogarithmicRegretPair, RareLoss
from randomist.tasks.lqg import LQG
from randomist.tasks.mountain_car import MountainCar

__all__ = [
    "LQG",
    "Cartpole",
    "ConstantRegretPair",
    "ContinuousCartPoleEnv",
    "ControlTask",
    "FollowTheLeaderTrap",
    "GymnasiumTask",
    "Illustrative",
    "LQGEnv",
    "LogarithmicRegretPair",
    "MountainCar",
    "RareLoss",
    "Task",
    "gymnasium",
    "register",
    "register_prefix",
    "task",
    "task_ids",
]
