"""``gridwise demo``: one source on every device, on real data, compared with NumPy."""

from __future__ import annotations

import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from gridwise.devices import registry
from gridwise.devices.base import Device
from gridwise.lang.errors import GridwiseError

from .samples import sample

KEYS = 1 << 20
REPEATS = 3
ENOUGH = 1.0  # seconds after which a device is not timed again


def _sources() -> Iterator[Path]:
    """The running Python's standard library, in a fixed order."""
    root = Path(sysconfig.get_path("stdlib"))
    yield from sorted(p for p in root.rglob("*.py") if "site-packages" not in p.parts)


def read_keys(source: Path | None, count: int = KEYS) -> np.ndarray:
    """``count`` u32 keys from a file's bytes, or from the standard library's sources.

    A file with fewer gives the largest power of two that it has.
    """
    data = bytearray()
    for path in [source] if source is not None else _sources():
        data += path.read_bytes()[: 4 * count - len(data)]
        if len(data) == 4 * count:
            break
    keys = np.frombuffer(bytes(data[: len(data) // 4 * 4]), "<u4").astype(np.uint32)
    if len(keys) < 2:
        raise click.UsageError(f"{source} has fewer than two 4-byte keys")
    return keys[: 1 << (len(keys).bit_length() - 1)]


def _seconds(work: Any) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def sort_row(device: Device, keys: np.ndarray, wanted: np.ndarray) -> tuple[float, float, bool]:
    """Kernel seconds, seconds with both transfers, and whether the result is NumPy's.

    Each time is the best of a few runs (of one, on a slow device) after a small one that compiles. Kernel time is
    from the first launch queued to the last one done.
    """
    sort = sample("bitonic_sort").sort
    sort(device.array(keys[:1024]))
    device.synchronize()
    right = True
    kernel: list[float] = []
    whole: list[float] = []
    while len(whole) < REPEATS and sum(whole) < ENOUGH:
        start = time.perf_counter()
        on_device = device.array(keys)
        device.synchronize()
        copied = time.perf_counter()
        sort(on_device)
        device.synchronize()
        sorted_ = time.perf_counter()
        result = on_device.numpy()
        end = time.perf_counter()
        on_device.free()
        right = right and bool(np.array_equal(result, wanted))
        kernel.append(sorted_ - copied)
        whole.append(end - start)
    return min(kernel), min(whole), right


@click.command("demo")
@click.option("--input", "source", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Sort this file.")
@click.option("--device", "wanted", multiple=True, metavar="NAME", help="Only this device; may be repeated.")
def command(source: Path | None, wanted: tuple[str, ...]) -> None:
    """Sort 2^20 keys from a real file on every device, then draw the Mandelbrot set on each.

    The keys are the bytes of the running Python's standard library, four at a time, or of --input.
    Exits with 1 unless every device gives NumPy's result.
    """
    console = Console()
    names = list(wanted) or registry.names()
    keys = read_keys(source)
    reference = np.sort(keys)
    failed = False
    origin = str(source) if source else "the Python standard library"
    title = f"bitonic sort of 2^{len(keys).bit_length() - 1} u32 keys from {origin}"
    table = Table("device", "driver", "kernel", "with transfer", "result", title=title)
    pictures: dict[str, np.ndarray] = {}
    times: dict[str, float] = {}
    mandelbrot = sample("mandelbrot")
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=2 * len(names))
        for name in names:
            try:
                device = registry.device(name)
                part, whole = keys, reference
                if device.kind == "check":  # an interpreter: a smaller job shows the same
                    part = keys[: min(len(keys), 1 << 12)]
                    whole = np.sort(part)
                progress.update(task, description=f"sort on {name}")
                kernel, total, right = sort_row(device, part, whole)
                verdict = "equal to numpy.sort" if right else "WRONG"
                if len(part) != len(keys):
                    verdict += f" (2^{len(part).bit_length() - 1} keys)"
                failed = failed or not right
                table.add_row(name, device.description, f"{1000 * kernel:.2f} ms", f"{1000 * total:.2f} ms", verdict)
                progress.update(task, advance=1, description=f"Mandelbrot on {name}")
                size = (1024, 768) if device.kind != "check" else (128, 96)
                mandelbrot.render(device, *size)  # compiles
                holder: dict[str, np.ndarray] = {}
                times[name] = _seconds(lambda d=device, s=size, h=holder: h.update(picture=mandelbrot.render(d, *s)))
                pictures[name] = holder["picture"]
                progress.update(task, advance=1)
            except GridwiseError as e:
                failed = True
                table.add_row(name, "", "", "", Text(f"{type(e).__name__}: {e}", style="red"))
    console.print(table)
    if pictures:
        console.print(_compared(pictures, times))
        first = next(iter(pictures))
        path = Path("mandelbrot.png")
        mandelbrot.write_png(path, mandelbrot.colours(pictures[first]))
        console.print(f"{path}: as drawn by {first}")
    sys.exit(1 if failed else 0)


def _compared(pictures: dict[str, np.ndarray], times: dict[str, float]) -> Table:
    """Each picture beside the first one of its size.

    They need not be equal: a multiply and an add may become one fused operation (rule 11), which moves a few
    pixels at the edge of the set, where the last bit of a number decides when it escapes.
    """
    table = Table("device", "pixels", "with transfer", "compared", title="Mandelbrot set")
    first: dict[tuple[int, ...], str] = {}
    for name, picture in pictures.items():
        other = first.setdefault(picture.shape, name)
        if other == name:
            verdict = "the reference of its size"
        else:
            different = int(np.count_nonzero(picture != pictures[other]))
            verdict = f"equal to {other}"
            if different:
                verdict = f"{different} of {picture.size} pixels differ from {other} (fused multiply-add)"
        height, width = picture.shape
        table.add_row(name, f"{width} x {height}", f"{1000 * times[name]:.2f} ms", verdict)
    return table
