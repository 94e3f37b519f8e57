"""What a first result costs, loosely: three times the limits of ``bench/startup.py``, since machines differ."""

import importlib.util
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench" / "startup.py"


def test_first_results_come_soon():
    spec = importlib.util.spec_from_file_location("startup", BENCH)
    assert spec is not None and spec.loader is not None
    startup = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(startup)
    figures = startup.measure(3)
    slow = {what: figures[what] for what, limit in startup.LIMITS.items() if figures[what] > 3 * limit}
    assert not slow, figures
