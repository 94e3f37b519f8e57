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


_LOOP_BOUNDING = 2  # WGPUShaderRuntimeChecks_ForceLoopBounding


def _module(device: Any, label: str, code: str) -> Any:
    """A shader module without naga's own bounds checks.

    Every access was proved or checked before (``passes/lower_checks``), so clamping them again is for nothing. The
    counter that naga puts into each loop stays: endless loops are undefined on Metal and HLSL, and without it
    Mesa 22.3 loses what the last turn of some loops did. wgpu-native has a function for this that wgpu-py does not
    wrap; where it is missing the module has all checks.
    """
    try:
        from wgpu.backends.wgpu_native import _api as api

        source = api.new_struct_p("WGPUShaderSourceWGSL *", code=api.to_c_string_view(code))
        source[0].chain.next = api.ffi.NULL
        source[0].chain.sType = api.lib.WGPUSType_ShaderSourceWGSL
        descriptor = api.new_struct_p(
            "WGPUShaderModuleDescriptor *",
            nextInChain=api.ffi.cast("WGPUChainedStruct *", source),
            label=api.to_c_string_view(label),
        )
        create = api.libf.wgpuDeviceCreateShaderModuleTrusted
        wrap, handle = api.GPUShaderModule, device._internal
    except (ImportError, AttributeError):
        return device.create_shader_module(label=label, code=code)
    return wrap(label, create(handle, descriptor, _LOOP_BOUNDING), device)


def compile_shader(device: Any, shader: Shader, layout: Any) -> Any:
    """A compute pipeline. Raises DeviceError with the author's line."""
    import wgpu

    try:
        module = _module(device, shader.entry, shader.text)
        return device.create_compute_pipeline(
            label=shader.entry, layout=layout, compute={"module": module, "entry_point": shader.entry}
        )
    except (wgpu.GPUError, RuntimeError) as e:
        raise DeviceError(message(shader, str(e))) from None
