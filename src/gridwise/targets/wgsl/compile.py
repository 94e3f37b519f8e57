"""WGSL to a pipeline on a wgpu device; the front end's complaints are shown at the author's line."""

from __future__ import annotations

import re
from typing import Any

from gridwise.lang.errors import DeviceError, report

from .emit import Shader

_PLACE = re.compile(r"wgsl:(\d+):(\d+)|:(\d+):(\d+) error")  # naga's, Tint's


def message(shader: Shader, text: str) -> str:
    """A front end's message about a shader, with the Python place that the line came from."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    error = next((m for m in lines if "error" in m.lower() and not m.lower().startswith("validation error")), "")
    what = error.removeprefix("Shader '' parsing error:").strip() or (lines[-1] if lines else "unknown error")
    found = _PLACE.search(text)
    loc = shader.loc(int(found[1] or found[3])) if found else None
    return report(
        f"{shader.entry}: the WGSL compiler refused the kernel: {what}",
        loc or shader.loc(len(shader.lines)),
        "this is a fault of gridwise, not of the kernel; please report it with `gridwise inspect --stage wgsl`",
    )


def compile_shader(device: Any, shader: Shader, layout: Any) -> Any:
    """A compute pipeline. Raises DeviceError with the author's line."""
    import wgpu

    try:
        module = device.create_shader_module(label=shader.entry, code=shader.text)
        return device.create_compute_pipeline(
            label=shader.entry, layout=layout, compute={"module": module, "entry_point": shader.entry}
        )
    except (wgpu.GPUError, RuntimeError) as e:
        raise DeviceError(message(shader, str(e))) from None
