"""The CUDA driver, through NVIDIA's ``cuda-bindings``: loading it, calling it, and saying what went wrong.

Nothing here is imported by ``import gridwise``: the bindings are loaded when the first CUDA device is opened.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any

from gridwise.lang.errors import DeviceError, DeviceUnavailableError, OutOfMemoryError

INSTALL = "pip install 'gridwise[cuda]'"
FORKED = (
    "CUDA cannot be used in a forked child of a process that has used it\n"
    "  help: start workers with multiprocessing.get_context('spawn'), or open the device only in the children"
)

# Errors after which the driver refuses all further work in this process.
FATAL = frozenset(
    f"CUDA_ERROR_{name}"
    for name in (
        "ILLEGAL_ADDRESS LAUNCH_FAILED LAUNCH_TIMEOUT MISALIGNED_ADDRESS ILLEGAL_INSTRUCTION INVALID_PC "
        "INVALID_ADDRESS_SPACE HARDWARE_STACK_ERROR ECC_UNCORRECTABLE ASSERT"
    ).split()
)


class _State:
    """Whether the driver was started in this process, or in the one that it was forked from."""

    started = False
    forked = False


def _after_fork() -> None:
    _State.forked = _State.started


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def usable() -> bool:
    """False in a forked child, where even freeing memory would go wrong."""
    return not _State.forked


class CudaError(DeviceError):
    """The driver refused a call. ``code`` is its name for the error."""

    def __init__(self, call: str, code: str, text: str):
        self.call, self.code = call, code
        lost = "\n  help: this error ends all CUDA work in the process; restart it" if code in FATAL else ""
        super().__init__(f"{call} failed: {code} ({text}){lost}")


@functools.cache
def driver() -> Any:
    """``cuda.bindings.driver``, initialised. Raises DeviceUnavailableError saying what is missing."""
    if _State.forked:
        raise DeviceUnavailableError(FORKED)
    try:
        from cuda.bindings import driver as bindings
    except ImportError as e:
        missing = f"the CUDA device needs the package cuda-bindings ({e})"
        raise DeviceUnavailableError(f"{missing}\n  help: {INSTALL}") from None
    try:
        (error,) = bindings.cuInit(0)
    except (ImportError, OSError, RuntimeError):  # the driver's library is not on this machine
        raise DeviceUnavailableError(
            "no NVIDIA driver was found on this machine (libcuda)\n  help: install the driver, or use device 'cpu'"
        ) from None
    if error != bindings.CUresult.CUDA_SUCCESS:
        raise DeviceUnavailableError(f"the NVIDIA driver does not start: {error.name} ({_text(bindings, error)})")
    _State.started = True
    return bindings


def _text(bindings: Any, error: Any) -> str:
    try:
        found, text = bindings.cuGetErrorString(error)
    except Exception:  # a driver too broken to explain itself still gets its error's name reported
        return "no description"
    return text.decode() if found == bindings.CUresult.CUDA_SUCCESS and text else "no description"


def call(name: str, *args: Any) -> Any:
    """Call a driver function by name; its result, or a tuple of them, or None."""
    if _State.forked:
        raise DeviceUnavailableError(FORKED)
    bindings = driver()
    result = getattr(bindings, name)(*args)
    if result[0] == bindings.CUresult.CUDA_SUCCESS:
        return result[1] if len(result) == 2 else result[1:] if len(result) > 2 else None
    raise error(name, result[0])


def error(name: str, code: Any) -> CudaError:
    """The exception for a failed call."""
    return CudaError(name, code.name, _text(driver(), code))


def out_of_memory(e: CudaError, nbytes: int) -> OutOfMemoryError:
    """An allocation failure in the user's terms."""
    free, total = call("cuMemGetInfo")
    return OutOfMemoryError(
        f"the CUDA device could not allocate {nbytes:,} bytes: {free:,} of {total:,} are free ({e.code})"
    )


def version() -> int:
    """CUDA version that the driver supports, as 1000 * major + 10 * minor."""
    return int(call("cuDriverGetVersion"))


@functools.cache
def attribute(device: int, name: str) -> int:
    """A device attribute, by its name without ``CU_DEVICE_ATTRIBUTE_``."""
    key = getattr(driver().CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
    return int(call("cuDeviceGetAttribute", key, device))


@functools.cache
def function_address(name: str) -> int:
    """Address of a driver function, for launchers compiled at run time."""
    flags = driver().CUdriverProcAddress_flags.CU_GET_PROC_ADDRESS_DEFAULT
    found = call("cuGetProcAddress", name.encode(), version(), flags)
    return int(found[0] if isinstance(found, tuple) else found)


def release(enter: Callable[[], None], *calls: tuple[Any, ...]) -> None:
    """Give driver objects back, from a finalizer: nothing where the process is past using the driver (a forked
    child, a context lost to an earlier error), because then they are gone already."""
    if _State.forked:
        return
    try:
        enter()
        for c in calls:
            call(*c)
    except DeviceError:
        pass


class Context:
    """The primary context of one device, which every CUDA library in the process shares."""

    def __init__(self, ordinal: int):
        self.ordinal = ordinal
        self.device = call("cuDeviceGet", ordinal)
        self.handle = call("cuDevicePrimaryCtxRetain", self.device)
        self._thread = threading.local()

    def enter(self) -> None:
        """Make it current in this thread."""
        call("cuCtxSetCurrent", self.handle)
        self._thread.entered = True

    def enter_once(self) -> None:
        """As ``enter``, but only the first time in a thread: for calls where another library's context that
        became current meanwhile is reported by the driver, so that the caller can enter and try again."""
        if not getattr(self._thread, "entered", False):
            self.enter()
