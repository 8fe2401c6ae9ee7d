"""The shared history of a finite set on a device of JAX: the same samples and sums as `FiniteHistory`, for millions.

Log-densities and divergences are made on the device from their closed forms, where the family has them (`in_jax`), and
by the family elsewhere. What is saved is what `FiniteHistory` saves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from randomist._types import Array, Indices
from randomist.errors import MediatorError, ParameterError
from randomist.families.in_jax import in_jax
from randomist.histories.columns import Columns
from randomist.histories.device_columns import DeviceColumns, log_densities
from randomist.histories.device_nodes import DeviceNodes
from randomist.histories.finite import FiniteHistory
from randomist.importance.divergences import Divergence
from randomist.importance.divergences.mixture import Mixture
from randomist.importance.estimators import Estimator
from randomist.importance.passes import jax as passes
from randomist.importance.passes import layout
from randomist.importance.passes.devices import computing_on, device_named, memory_of

if TYPE_CHECKING:
    from randomist.spaces import Finite


class DeviceHistory(FiniteHistory):
    """Told samples of a finite set on a device; the same interface, and what it saves is the same."""

    columns: DeviceColumns

    def __init__(
        self,
        space: Finite,
        divergence: type[Divergence],
        estimator: Estimator,
        *,
        nodes: bool = False,
        device: str = "gpu",
        **forgetting: Any,
    ) -> None:
        if any(value is not None for value in forgetting.values()):
            raise ParameterError(
                f"a history that forgets is small, and stays with the CPU: leave device={device!r} out, or window and "
                "discount"
            )
        self.place = device_named(device)
        with computing_on(self.place):
            self.members = in_jax(space.family)
            super().__init__(space, divergence, estimator, nodes=nodes)
            self.eta = jnp.stack([jnp.zeros(space.sources), jnp.full(space.sources, -jnp.inf)])

    def _columns(self, size: int, discount: float | None) -> Columns:
        dimension = int(np.prod(self.space.family.shape, dtype=int))
        by_payoff = not self.estimator.of_sums
        return DeviceColumns(self.space.sources, by_payoff, self.members, memory_of(self.place), dimension)

    def _nodes(self, wanted: bool) -> Any:
        integrated = isinstance(self.divergence, Mixture)
        if self.members is None or not (wanted or integrated):
            return super()._nodes(wanted)
        nodes: Any = DeviceNodes(self.space, self.members)
        if isinstance(self.divergence, Mixture):
            self.divergence.nodes = nodes
        return nodes

    # Samples come in.

    def append(self, source: int, mediator: Any, payoff: float, factor: float = 1.0) -> None:
        with computing_on(self.place):
            if self.counted:
                log_density = self._log_density(source, mediator)
                self._play(source)
                self.columns.count(source, log_density, payoff)
            else:
                self._refuse(np.array([source]), np.asarray(mediator)[None])
                self._play(source)
                point = np.reshape(np.asarray(mediator, np.float64), -1)
                self.columns.store(source, self._column(mediator), payoff, point)
        self._told += 1
        if self.divergence.stepwise:
            self.divergence.observe(source, mediator)

    def _play(self, source: int) -> None:
        self.columns.play(source)
        self.eta = passes.add_effective(self.eta, self._divergence(source), 1.0)

    def check(self, sources: Indices, mediators: NDArray[Any]) -> None:
        if self.counted:
            super().check(sources, mediators)
        else:
            self._refuse(sources, mediators)

    def extend(
        self,
        sources: Indices,
        mediators: NDArray[Any],
        payoffs: Array,
        factor: float = 1.0,
        *,
        checked: bool = False,
    ) -> None:
        if not checked:
            self.check(sources, mediators)
        if self.counted or self.members is None:
            for source, mediator, payoff in zip(sources.tolist(), mediators, payoffs.tolist(), strict=True):
                self.append(source, mediator.item() if mediator.ndim == 0 else mediator, payoff)
            return
        with computing_on(self.place):
            for source, times in zip(*(side.tolist() for side in np.unique(sources, return_counts=True)), strict=True):
                self.eta = passes.add_effective(self.eta, self._divergence(source), float(times))
            self.columns.passes.count_plays(self.columns.plays, self.columns.recent, sources)
            self.columns.on_device = jnp.asarray(self.columns.plays[layout.NOW], jnp.float64)
            self._write(sources, mediators, payoffs)
        self._told += len(sources)

    def add_plays(self, times: Indices) -> None:
        with computing_on(self.place):
            self.columns.add_plays(times)
            for source in np.flatnonzero(times).tolist():
                self.eta = passes.add_effective(self.eta, self._divergence(source), float(times[source]))

    def add_counted(self, source: int, log_density: Array, payoff: float) -> None:
        with computing_on(self.place):
            super().add_counted(source, log_density, payoff)

    # Estimates.

    def harmonic(self) -> Array:
        bound: Array = np.array(self.eta)[layout.ETA, : self.space.size]
        return bound

    def estimate(self, confidence: float) -> Any:
        with computing_on(self.place):
            return super().estimate(confidence)

    def standard_error(self, mean: Array, estimates: Any) -> Array:
        with computing_on(self.place):
            return super().standard_error(mean, estimates)

    def payoff_distributions(self, rows: Indices, estimates: Any) -> tuple[Array, Array]:
        with computing_on(self.place):
            return super().payoff_distributions(rows, estimates)

    def truncated_mass(self, threshold: Array) -> Array:
        with computing_on(self.place):
            return super().truncated_mass(threshold)

    # Save and load.

    def state(self) -> dict[str, Any]:
        return {"columns": self.columns.state(), "eta": np.array(self.eta)} | self.divergence.state()

    def restore(self, state: dict[str, Any], sources: Indices, mediators: NDArray[Any], payoffs: Array) -> None:
        if "columns" not in state:
            raise ParameterError("a state of version 0.1.0 is loaded on the CPU first; save it anew from there")
        with computing_on(self.place):
            self.columns.restore(state["columns"])
            self.eta = jnp.asarray(np.asarray(state["eta"], np.float64))
            self.divergence.restore(state)
            if not self.counted:
                self._write(sources, mediators, payoffs)
        self._told = int(self.plays.sum())

    # Inside.

    def _write(self, sources: Indices, mediators: NDArray[Any], payoffs: Array) -> None:
        points = np.reshape(mediators, (len(sources), self.columns.dimension)).astype(np.float64)
        if self.members is not None:
            self.columns.store_all(np.asarray(sources), points, payoffs)
            return
        for i, source in enumerate(sources.tolist()):
            self.columns.store(source, self._column(mediators[i]), float(payoffs[i]), points[i])
        for block in self.columns.blocks:
            block.stale = True

    def _column(self, mediator: Any) -> Any:
        """log p_k(z) of every source, on the device.  (S,)"""
        if self.members is None:
            return jnp.asarray(self.space.family.log_densities(mediator))
        return log_densities(self.members, np.reshape(np.asarray(mediator, np.float64), -1))

    def _divergence(self, source: int) -> Any:
        if self.members is None or self.counted:
            return jnp.asarray(super()._divergence(source))
        return _log_divergences(self.members, source)

    def _refuse(self, sources: Indices, mediators: NDArray[Any]) -> None:
        """Refuse mediators that cannot have come from their sources: of each, one density is enough."""
        family = self.space.family
        for source in np.unique(sources).tolist():
            mine = np.flatnonzero(sources == source)
            wrong = mine[family.log_density([source], mediators[mine])[0] == -np.inf]
            if wrong.size:
                raise MediatorError(
                    f"mediator {mediators[wrong[0]]!r} has density 0 under decision {source}, which is said to have "
                    "drawn it; tell a trial with the mediator that it carries"
                )


@jax.jit
def _log_divergences(members: Any, source: Any) -> Any:
    return members.log_divergences_to(source)
