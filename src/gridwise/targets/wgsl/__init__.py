"""WGSL for WebGPU: Vulkan, Metal, DX12 and browsers."""

from .emit import Shader, emit

__all__ = ["Shader", "emit"]
