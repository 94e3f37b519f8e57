"""The ``@kernel`` object: contracts, binding, specialisation, prepared launches, tuning."""

from .choices import Choice, Finding, Trial, check_choices, export_choices, import_choices, read_choices
from .graph import Graph, graph
from .kernel import Kernel, Prepared, kernel
from .tuning import Tuned, TuningWarning, tune, tuning

__all__ = [
    "Choice",
    "Finding",
    "Graph",
    "Kernel",
    "Prepared",
    "Trial",
    "Tuned",
    "TuningWarning",
    "check_choices",
    "export_choices",
    "graph",
    "import_choices",
    "kernel",
    "read_choices",
    "tune",
    "tuning",
]
