"""Prints the two figures that the prover is held to, behind the results of the tests."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    told = [told for reports in terminalreporter.stats.values() for r in reports
            for told in getattr(r, "user_properties", ()) if getattr(r, "when", "") == "call"]
    seen = [value for name, value in told if name == "safety"]
    if not seen:
        return
    accepted = [r["name"] for r in seen if r["bad"] and r["verdict"] == "accepted"]
    twins = [r for r in seen if not r["bad"]]
    refused = [r for r in twins if r["verdict"] != "accepted"]
    proofs = sorted(r["ms"] for r in seen)
    hard = [r for r in seen if r["bad"] and r["verdict"] == "UnprovedError"]
    out = terminalreporter
    out.section("safety")
    out.line(f"unsafe programs accepted: {len(accepted)} of {len(seen) - len(twins)}")
    for name in accepted:
        out.line(f"  {name}")
    out.line(f"  refused without a counterexample: {', '.join(r['name'] for r in hard) or 'none'}")
    out.line(f"safe programs refused: {len(refused)} of {len(twins)} ({len(refused) / max(1, len(twins)):.1%})")
    for r in refused:
        out.line(f"  {r['name']}: {r['why']}")
    slowest = max(seen, key=lambda r: r["ms"])
    out.line(f"time of a proof: median {statistics.median(proofs):.1f} ms, worst {proofs[-1]:.0f} ms "
             f"({slowest['name']}{', faulty' if slowest['bad'] else ''})")
    found = [value for name, value in told if name == "checker"]
    if found:
        costs = sorted((cost, program) for name, (program, cost) in (t for t in told if t[0] == "cost"))
        slow = [f"{program} {cost:.0f}" for cost, program in reversed(costs) if cost > 4]
        out.line(f"faults that the checker finds, forced past the prover: {len(found)}; its time a thread: median "
                 f"{costs[len(costs) // 2][0]:.1f} us; more than 4 for {', '.join(slow) or 'none'}")
