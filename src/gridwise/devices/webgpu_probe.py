"""What a WebGPU driver does where the specification leaves it open: measured once a device, on cases that tell.

Floats: WGSL allows 2.5 ulp for a division and lets ``sqrt`` and ``fma`` be composed of other operations. A driver
that does so fails on a good part of random operands; one that is right on all of 4,096 is taken to be exact.
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

# Whether lanes are the threads of a block in order: what the language says, and WebGPU leaves to the driver.
_LANES = """
@group(0) @binding(0) var<storage, read> operands: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<u32>;

@compute @workgroup_size({})
fn probe(@builtin(local_invocation_index) thread: u32, @builtin(subgroup_invocation_id) lane: u32,
         @builtin(subgroup_size) size: u32) {{
    let first = subgroupShuffle(thread, 0u);
    results[thread] = select(operands[0], 1u, lane == thread % size && first == thread - lane);
}}
"""


def probe(device: Any) -> Numerics:
    """Run the measurement on a wgpu device."""
    rng = np.random.default_rng(2026)
    v = np.empty((COUNT, 4), np.float32)
    v[:, 0] = np.ldexp(rng.random(COUNT) + 0.5, rng.integers(-20, 20, COUNT))
    v[:, 1] = np.ldexp(rng.random(COUNT) + 0.5, rng.integers(-20, 20, COUNT))
    v[:, 2] = -(v[:, 0] * v[:, 1])  # cancels all but what a single rounding keeps
    v[:, 3] = np.ldexp(rng.random(COUNT) + 0.5, -130)
    got = _run(device, _SOURCE, v, v.nbytes, COUNT // 64).view(np.float32).reshape(-1, 4)
    exact = v.astype(np.float64)
    fused = (exact[:, 0] * exact[:, 1] + exact[:, 2]).astype(np.float32)  # the product is exact in a double
    return Numerics(
        division=bool(np.array_equal(got[:, 0], v[:, 0] / v[:, 1])),
        sqrt=bool(np.array_equal(got[:, 1], np.sqrt(v[:, 0]))),
        fma=bool(np.array_equal(got[:, 2], fused)),
        subnormals=bool(np.array_equal(got[:, 3], v[:, 3] + v[:, 3])),
    )


def linear_lanes(device: Any, threads: int) -> bool:
    """Whether thread ``n`` of a block of so many is lane ``n % size`` of its subgroup."""
    got = _run(device, _LANES.format(threads), np.zeros(4, np.uint32), threads * 4, 1)
    return bool(got.view(np.uint32).all())


def _run(device: Any, source: str, operands: np.ndarray, nbytes: int, blocks: int) -> np.ndarray:
    """The bytes of ``results`` after the shader has run."""
    module = device.create_shader_module(code=source)
    pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "probe"})
    given = device.create_buffer_with_data(data=operands, usage=0x80)
    results = device.create_buffer(size=nbytes, usage=0x80 | 0x4)
    entries = [{"binding": n, "resource": {"buffer": b}} for n, b in enumerate((given, results))]
    group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)
    encoder = device.create_command_encoder()
    work = encoder.begin_compute_pass()
    work.set_pipeline(pipeline)
    work.set_bind_group(0, group)
    work.dispatch_workgroups(blocks)
    work.end()
    device.queue.submit([encoder.finish()])
    return np.frombuffer(device.queue.read_buffer(results), np.uint8)
