"""The ``@kernel`` object: contracts, binding, specialisation, prepared launches."""

from .kernel import Kernel, Prepared, kernel

__all__ = ["Kernel", "Prepared", "kernel"]
