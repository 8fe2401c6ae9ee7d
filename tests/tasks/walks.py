"""An environment of the tests' own, with faults on request; Gymnasium knows it by `tests.tasks.walks:<id>` too."""

from __future__ import annotations

import math
import os

import gymnasium
import numpy as np
from gymnasium import spaces

import randomist as rd


class Walk(gymnasium.Env):
    """s' = s + a + noise in a row of numbers; pays -|s|; what `fault` names goes wrong at the third step."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def __init__(self, fault="", render_mode=None):
        self.fault, self.carried = fault, 0.0
        if fault in ("Dict", "MultiDiscrete", "integers", "images", "matrix"):
            self.observation_space, self.action_space = {
                "Dict": (spaces.Dict({"a": self.observation_space}), self.action_space),
                "MultiDiscrete": (self.observation_space, spaces.MultiDiscrete([2, 3])),
                "integers": (self.observation_space, spaces.Box(0, 9, (2,), np.int64)),
                "images": (spaces.Box(0, 255, (2, 2, 3), np.uint8), spaces.Discrete(3, start=-1)),
                "matrix": (self.observation_space, spaces.Box(np.float32([[-1, -2]]), np.float32([[1, np.inf]]))),
            }[fault]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.state = 0, self.np_random.normal(size=2)
        return self.seen(), {}

    def seen(self):
        if self.fault == "images":
            return (np.arange(12).reshape(2, 2, 3) * abs(self.state[0]) * 10 % 256).astype(np.uint8)
        return self.state.copy()

    def step(self, action):
        assert self.action_space.contains(action), action
        self.steps += 1
        self.state = self.state + 0.1 * np.resize(action, 2) + 0.05 * self.np_random.normal(size=2)
        reward, observation = -float(np.abs(self.state).sum()), self.seen()
        if self.steps == 3:
            bad = self.state[0] > 0
            reward = {"nan reward": math.nan, "inf reward": math.inf}.get(self.fault, reward) if bad else reward
            if self.fault == "nan observation" and bad:
                observation[0] = math.nan
            if self.fault == "shape":
                observation = np.zeros(3)
        if self.fault == "memory":  # of the episodes before
            self.carried += 1
            reward += self.carried
        if self.fault == "process":
            reward += os.getpid()
        return observation, reward, False, self.steps == 8 and self.fault == "truncates", {}


for _name, _steps in (("Walk-v0", 10), ("Endless-v0", None)):
    if f"randomist-tests/{_name}" not in gymnasium.registry:
        gymnasium.register(f"randomist-tests/{_name}", entry_point=Walk, max_episode_steps=_steps)


def walk(fault="", **settings):
    return rd.tasks.gymnasium("randomist-tests/Walk-v0", fault=fault, **settings)
