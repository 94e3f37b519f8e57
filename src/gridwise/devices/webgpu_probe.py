"""Which float operations a WebGPU driver rounds correctly: measured once a device, on cases that tell.

WGSL allows 2.5 ulp for a division and lets ``sqrt`` and ``fma`` be composed of other operations. A driver that does
so fails on a good part of random operands; one that is right on all of 4,096 is taken to be exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gridwise.targets.wgsl.dialect import Numerics

_SOURCE = """
@group(0) @binding(0) var<storage, read> operands: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> results: array<vec4<f32>>;

@compute @workgroup_size(64)
fn probe(@builtin(global_invocation_id) id: vec3<u32>) {
    let v = operands[id.x];
    results[id.x] = vec4<f32>(v.x / v.y, sqrt(v.x), fma(v.x, v.y, v.z), v.w + v.w);
}
"""
COUNT = 4096


def probe(device: Any) -> Numerics:
    """Run the measurement on a wgpu device."""
    rng = np.random.default_rng(2026)
    v = np.empty((COUNT, 4), np.float32)
    v[:, 0] = np.ldexp(rng.random(COUNT) + 0.5, rng.integers(-20, 20, COUNT))
    v[:, 1] = np.ldexp(rng.random(COUNT) + 0.5, rng.integers(-20, 20, COUNT))
    v[:, 2] = -(v[:, 0] * v[:, 1])  # cancels all but what a single rounding keeps
    v[:, 3] = np.ldexp(rng.random(COUNT) + 0.5, -130)
    module = device.create_shader_module(code=_SOURCE)
    pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "probe"})
    operands = device.create_buffer_with_data(data=v, usage=0x80)
    results = device.create_buffer(size=v.nbytes, usage=0x80 | 0x4)
    entries = [{"binding": n, "resource": {"buffer": b}} for n, b in enumerate((operands, results))]
    group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)
    encoder = device.create_command_encoder()
    work = encoder.begin_compute_pass()
    work.set_pipeline(pipeline)
    work.set_bind_group(0, group)
    work.dispatch_workgroups(COUNT // 64)
    work.end()
    device.queue.submit([encoder.finish()])
    got = np.frombuffer(device.queue.read_buffer(results), np.float32).reshape(-1, 4)
    exact = v.astype(np.float64)
    fused = (exact[:, 0] * exact[:, 1] + exact[:, 2]).astype(np.float32)  # the product is exact in a double
    return Numerics(
        division=bool(np.array_equal(got[:, 0], v[:, 0] / v[:, 1])),
        sqrt=bool(np.array_equal(got[:, 1], np.sqrt(v[:, 0]))),
        fma=bool(np.array_equal(got[:, 2], fused)),
        subnormals=bool(np.array_equal(got[:, 3], v[:, 3] + v[:, 3])),
    )
