"""Policies over trajectories: how likely each was to act as one of them did, and what that says about the others.

The environment's part of a trajectory's likelihood is the same for every policy and cancels, so that the product of the
actions' densities is all that is needed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from randomist._checks import choice, finite_array, flag, number, real, reals, whole_number
from randomist._types import Array
from randomist.errors import EmptySpaceError, MediatorError, ParameterError, PayoffError, ShapeError, StateError
from randomist.families.likelihoods import Likelihoods
from randomist.policies.noisy import GaussianPolicy, SoftmaxPolicy
from randomist.policies.saved import SavedPolicy, parameter_vector, policy_from_state

if TYPE_CHECKING:
    from randomist.policies.episodes import Episode

PolicyLike: TypeAlias = SavedPolicy | tuple[GaussianPolicy | SoftmaxPolicy, ArrayLike]


class Observed(NamedTuple):
    """What `observe_episode` made of an episode before: told again, it stands for the episode."""

    payoff: float
    mediator: Array


class Policies(Likelihoods):
    """Gaussian or softmax policies, whose mediators are trajectories.

    A mediator is kept as what matters of it: the log-likelihood under every policy, and the log-divergence of every
    policy from the one that acted, summed over the visited states (Metelli et al. 2018), (2S,). With "per-decision"
    weights it has one row per step: both summed up to there, and the discounted reward, (H, 2S + 1).
    """

    def __init__(
        self,
        policies: Sequence[PolicyLike] | str,
        weights: str = "trajectory",
        discount: float = 1.0,
        horizon: int | None = None,
        average: bool = False,
    ) -> None:
        pairs = _from_text(policies) if isinstance(policies, str) else [_pair(policy) for policy in policies]
        _check_alike(pairs)
        choice(weights, ("trajectory", "per-decision"), "weights")
        if number(discount, "discount", above=0) > 1:
            raise ParameterError(f"discount must lie in (0, 1], got {discount!r}")
        if horizon is None and (weights == "per-decision" or average):
            raise ParameterError('weights="per-decision" and average=True need horizon, the most steps there can be')
        super().__init__(len(pairs))
        steps = None if horizon is None else whole_number(horizon, "horizon")
        S = len(pairs)
        checked = {
            "policies": tuple(policy for policy, _ in pairs),
            "parameters": tuple(theta for _, theta in pairs),
            "weights": weights,
            "discount": float(discount),
            "horizon": steps,
            "average": flag(average, "average"),
            "shape": (steps, 2 * S + 1) if weights == "per-decision" else (2 * S,),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    steps_known: ClassVar[bool] = True

    policies: tuple[GaussianPolicy | SoftmaxPolicy, ...]
    parameters: tuple[Array, ...]
    weights: str
    discount: float
    horizon: int | None
    average: bool

    # A mediator, taken apart.

    def log_density(self, decisions: ArrayLike | None, mediators: ArrayLike) -> Array:
        rows = np.asarray(mediators, dtype=np.float64).reshape(-1, *self.shape)
        return (rows[:, -1] if self.weights == "per-decision" else rows)[:, self.indices(decisions)].T

    def log_densities(self, mediator: Any) -> Array:
        return np.ascontiguousarray(mediator[: self.count])

    def step_divergences(self, mediator: Any) -> Array:
        """log Π_h d2(π_x(·|s_h) || π_acted(·|s_h)) of every policy x.  (S,)"""
        divergence: Array = mediator[self.count : 2 * self.count]
        return divergence

    @property
    def weighted_steps(self) -> int | None:
        return self.horizon if self.weights == "per-decision" else None

    def whole(self) -> Policies:
        """The same policies with weights of whole trajectories."""
        pairs = tuple(zip(self.policies, self.parameters, strict=True))
        return Policies(pairs, "trajectory", self.discount, self.horizon, self.average)

    def joined(self, member: Any) -> Policies:
        """Refused: of a trajectory that was told, only its likelihoods are kept."""
        raise ParameterError(
            "a policy cannot be added while a learner runs: of the trajectories told so far only likelihoods are kept, "
            "which say nothing about a new policy; make a new learner of all policies"
        )

    # An episode as it is told.

    def observe(self, decision: int, payoff: Any, log_likelihoods: ArrayLike | None) -> tuple[Any, Array]:
        """Refused: policies compute their likelihoods."""
        raise MediatorError(
            "policies compute likelihoods from what was done: tell_episode(trial, episode), with observations, actions "
            "and rewards, and no payoff or log_likelihoods"
        )

    def observe_episode(self, decision: int, episode: Episode) -> tuple[float, Array]:
        """The payoff of an episode, and its mediator."""
        if isinstance(episode, Observed):
            return episode.payoff, self._observed_before(decision, episode.mediator)
        observations, actions, rewards = self._checked_episode(episode)
        log_density, divergence = self.steps(observations, actions, decision)  # (S, T) each
        log_density, divergence = log_density.cumsum(axis=1), divergence.cumsum(axis=1)
        self.checked(decision, log_density[:, -1])
        shares = self.step_weights(len(rewards))
        value = self._payoff(getattr(episode, "payoff", None), float(shares @ rewards))
        if self.weights == "trajectory":
            mediator = np.concatenate([log_density[:, -1], divergence[:, -1]])
        else:
            mediator = np.zeros(self.shape)
            last = np.minimum(np.arange(self.shape[0]), len(rewards) - 1)  # an episode that is over stays as it is
            mediator[:, : self.count] = log_density.T[last]
            mediator[:, self.count : -1] = divergence.T[last]
            mediator[: len(rewards), -1] = shares * rewards
        mediator.flags.writeable = False
        return value, mediator

    def _observed_before(self, decision: int, mediator: Any) -> Array:
        """A mediator that this method made before, checked and read-only."""
        found = reals(mediator, "an entry of a mediator")
        if found.shape != self.shape or np.isnan(found).any():
            raise MediatorError(f"a mediator of these policies has shape {self.shape}, without NaN, got {found.shape}")
        self.checked(decision, (found[-1] if self.weights == "per-decision" else found)[: self.count])
        found.flags.writeable = False
        return found

    def steps(self, observations: Array, actions: NDArray[Any], acted: int) -> tuple[Array, Array]:
        """Every policy's log-density of each action, and D_2 from the one that acted in each state.  (S, T) each"""
        outputs = self._outputs(observations)  # (S, T, a)
        if isinstance(self.policies[0], SoftmaxPolicy):
            from scipy.special import log_softmax, logsumexp  # slow to import

            log_mass = log_softmax(outputs, axis=-1)
            taken = np.take_along_axis(log_mass, actions[None, :, None], axis=-1)[..., 0]
            return taken, np.maximum(logsumexp(2 * log_mass - log_mass[acted], axis=-1), 0.0)
        std = np.array([np.broadcast_to(policy.std, outputs.shape[-1]) for policy in self.policies])[:, None]  # type: ignore[union-attr]
        log_density = -0.5 * ((actions - outputs) / std) ** 2 - np.log(std) - 0.5 * math.log(2 * math.pi)
        spread = 2 * std[acted] ** 2 - std**2  # s² = 2σ_q² - σ_p²
        with np.errstate(divide="ignore", invalid="ignore"):
            log_scale = 2 * np.log(std[acted]) - np.log(std) - 0.5 * np.log(spread)
            divergence = np.where(spread > 0, log_scale + (outputs - outputs[acted]) ** 2 / spread, np.inf)
        return log_density.sum(axis=-1), np.maximum(divergence.sum(axis=-1), 0.0)

    def step_weights(self, steps: int) -> Array:
        """What each reward counts in the payoff.  (T,)"""
        powers: Array = self.discount ** np.arange(max(steps, self.horizon or 0), dtype=np.float64)
        return np.asarray(powers[:steps] / powers.sum() if self.average else powers[:steps])

    def state(self) -> dict[str, Any]:
        parts = [
            {"policy": policy.state(), "parameters": theta.tolist()}
            for policy, theta in zip(self.policies, self.parameters, strict=True)
        ]
        settings = {name: getattr(self, name) for name in ("weights", "discount", "horizon", "average")}
        return {"kind": "Policies", "policies": json.dumps(parts)} | settings

    def _outputs(self, observations: Array) -> Array:
        """What every policy puts out at every state: policies of one shape together.  (S, T, action_size)"""
        T, alike = len(observations), dict[Any, list[int]]()
        for k, policy in enumerate(self.policies):
            alike.setdefault(policy.base, []).append(k)
        out = np.empty((self.count, T, self.policies[0].base.action_size))
        for base, which in alike.items():
            theta = np.repeat(np.array([self.parameters[k] for k in which]), T, axis=0)
            out[which] = base.outputs(theta, np.tile(observations, (len(which), 1))).reshape(len(which), T, -1)
        if not np.isfinite(out).all():
            raise MediatorError(
                "a policy put out something that is not finite in a visited state; check its parameters"
            )
        return out

    def _checked_episode(self, episode: Any) -> tuple[Array, NDArray[Any], Array]:
        if not all(hasattr(episode, name) for name in ("observations", "actions", "rewards")):
            raise MediatorError(
                f"tell_episode takes an Episode, with observations, actions and rewards; got {episode!r:.80}"
            )
        base, discrete = self.policies[0].base, isinstance(self.policies[0], SoftmaxPolicy)
        rewards = finite_array(episode.rewards, "rewards")
        observations = finite_array(episode.observations, "observations")
        T = rewards.size
        if rewards.ndim != 1 or not 1 <= T <= (self.horizon or T):
            raise ShapeError(f"rewards must have shape (T,) with T in 1..{self.horizon or 'any'}, got {rewards.shape}")
        if observations.shape not in ((T, base.observation_size), (T + 1, base.observation_size)):
            raise ShapeError(
                f"observations must have shape ({T}, {base.observation_size}), one per reward, got {observations.shape}"
            )
        actions = np.asarray(episode.actions)
        if actions.shape != ((T,) if discrete else (T, base.action_size)):
            raise ShapeError(
                f"actions must be those that were drawn, one per reward, got shape {actions.shape} for T={T}"
            )
        if not discrete:
            return observations[:T], finite_array(actions, "actions"), rewards
        if actions.dtype.kind not in "iu" or not ((actions >= 0) & (actions < base.action_size)).all():
            raise MediatorError(f"actions must be whole numbers in 0..{base.action_size - 1}")
        return observations[:T], actions, rewards

    def _payoff(self, told: Any, summed: float) -> Any:
        """What the episode says that it paid, else the sum of its rewards; per-decision weights need both to agree."""
        if told is None or self.weights == "trajectory":
            return summed if told is None else told
        difference = abs(real(told) - summed)
        if not difference <= 1e-6 * max(1.0, abs(summed)):
            raise PayoffError(
                f"per-decision weights need a payoff that is the sum of discounted rewards, {summed}; the episode "
                f"says {told}: set discount, average and horizon as it was computed, or leave its payoff out"
            )
        return told


def _pair(policy: Any) -> tuple[GaussianPolicy | SoftmaxPolicy, Array]:
    if isinstance(policy, SavedPolicy):
        policy = (policy.policy, policy.parameters)
    if not (isinstance(policy, tuple | list) and len(policy) == 2):
        raise ParameterError(f"a policy is a pair (GaussianPolicy or SoftmaxPolicy, parameters), got {policy!r:.80}")
    noisy, parameters = policy
    if not isinstance(noisy, GaussianPolicy | SoftmaxPolicy):
        raise ParameterError(
            f"policies over trajectories are noisy, a GaussianPolicy or a SoftmaxPolicy; got {noisy!r:.80}: without "
            "noise no other policy could have done the same"
        )
    return noisy, parameter_vector(noisy, parameters)


def _check_alike(pairs: Sequence[tuple[GaussianPolicy | SoftmaxPolicy, Array]]) -> None:
    if not pairs:
        raise EmptySpaceError("a space of policies needs at least one, got an empty list")
    kinds = {(type(p), p.base.observation_size, p.base.action_size) for p, _ in pairs}
    if len(kinds) > 1:
        raise ParameterError("policies must be of one kind, with observations and actions of the same sizes")


def _from_text(text: str) -> list[tuple[GaussianPolicy | SoftmaxPolicy, Array]]:
    try:
        return [_pair((policy_from_state(part["policy"]), part["parameters"])) for part in json.loads(text)]
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(f"policies cannot be read from {text[:80]!r}: {error}") from error
