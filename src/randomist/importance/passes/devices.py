"""Devices of JAX: found by name, in float64, with the memory that may be planned with. Imported on first use only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from randomist.errors import ParameterError

try:
    import jax
except ImportError as missing:
    raise ImportError(
        f"computing on a device needs JAX ({missing}); pip install 'randomist[jax]', or leave device= out"
    ) from missing

KINDS = ("cpu", "gpu", "tpu")
SHARE = 0.6  # of a device's memory that is planned with
WITHOUT_LIMIT = 2**31  # bytes, where a device does not say how much it has


def device_named(name: Any) -> Any:
    """The first device of a kind, "jax-cpu" being JAX's "cpu"; a typed error where there is none."""
    name = "cpu" if name == "jax-cpu" else name
    if name not in KINDS:
        raise ParameterError(f"device must be one of {', '.join(KINDS)}, got {name!r:.80}")
    try:
        return jax.devices(name)[0]
    except RuntimeError as error:
        raise ParameterError(
            f'JAX has no device "{name}" here: {str(error).splitlines()[0][:120]}; install JAX for it (for CUDA: '
            "pip install 'jax[cuda13]'), or take device=\"cpu\""
        ) from None


def memory_of(device: Any) -> int:
    """Bytes that may be taken."""
    stats = device.memory_stats() if hasattr(device, "memory_stats") else None
    return int(SHARE * stats["bytes_limit"]) if stats and "bytes_limit" in stats else WITHOUT_LIMIT


@contextmanager
def computing_on(device: Any) -> Iterator[None]:
    """Sums need float64, which JAX leaves out unless it is told otherwise."""
    with jax.enable_x64(True), jax.default_device(device):
        yield
