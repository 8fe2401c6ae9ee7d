"""JAX, where it is installed: in float64, on the device that was asked for."""

from randomist.importance.passes.devices import KINDS, computing_on, device_named, memory_of

__all__ = ["KINDS", "computing_on", "device_named", "memory_of"]
