"""The ``@kernel`` object: contracts, binding, specialisation, prepared launches."""

from .graph import Graph, graph
from .kernel import Kernel, Prepared, kernel

__all__ = ["Graph", "Kernel", "Prepared", "graph", "kernel"]
