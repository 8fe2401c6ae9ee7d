"""Tells Gymnasium of our environments. It calls this when it is imported (see `pyproject.toml`), so this is light."""

from __future__ import annotations

ENVIRONMENTS = {  # id -> class, steps of an episode
    "randomist/LQG-v0": ("LQGEnv", 20),
    "randomist/ContinuousCartPole-v0": ("ContinuousCartPoleEnv", 200),
}


def register_environments() -> None:
    """Make `randomist/...` known to `gymnasium.make`; their module is imported when one is made."""
    from gymnasium.envs.registration import register, registry

    for id, (name, steps) in ENVIRONMENTS.items():
        if id not in registry:  # registering twice makes Gymnasium warn
            register(id, entry_point=f"randomist.tasks.environments:{name}", max_episode_steps=steps)
