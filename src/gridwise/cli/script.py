"""Loading and running a user's file: what several verbs share."""

from __future__ import annotations

import importlib.util
import runpy
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, TracebackType

import click

from gridwise.lang.errors import GridwiseError
from gridwise.launch import Kernel, Tuned

_PACKAGE = str(Path(__file__).resolve().parents[1])


@contextmanager
def _as_script(path: Path, args: Sequence[str]) -> Iterator[None]:
    """``sys.argv`` and ``sys.path`` as ``python path args`` would have them."""
    saved = sys.argv, sys.path[:]
    sys.argv = [str(path), *args]
    sys.path.insert(0, str(path.resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = saved


def _users(tb: TracebackType | None) -> TracebackType | None:
    """A traceback from the user's first frame on."""
    here = tb
    while here is not None:
        name = here.tb_frame.f_code.co_filename
        if not name.startswith(_PACKAGE) and not name.startswith("<frozen") and "runpy" not in name:
            return here
        here = here.tb_next
    return None


def explain(error: Exception) -> None:
    """Print what a user's file did wrong: our reports alone, other errors with their traceback."""
    if isinstance(error, GridwiseError):
        click.echo(f"{type(error).__name__}: {error}", err=True)
    else:
        tb = _users(error.__traceback__)
        click.echo("".join(traceback.format_exception(type(error), error, tb)).rstrip(), err=True)


def run_script(path: Path, args: Sequence[str] = ()) -> int:
    """Run a file as ``__main__``; its exit status."""
    with _as_script(path, args):
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as e:
            if e.code is None or isinstance(e.code, int):
                return e.code or 0
            click.echo(e.code, err=True)
            return 1
        except Exception as e:
            explain(e)
            return 1
    return 0


def load(path: Path) -> ModuleType:
    """Import a file without running its ``__main__`` part; exits with 1 if that fails."""
    name = path.stem if path.stem.isidentifier() else "script"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise click.UsageError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    with _as_script(path, ()):
        saved = sys.modules.get(name)
        sys.modules[name] = module  # annotations and pickles look their module up
        try:
            spec.loader.exec_module(module)
        except Exception as e:
            explain(e)
            sys.exit(1)
        finally:
            if saved is not None:
                sys.modules[name] = saved
    return module


def tuned(module: ModuleType) -> dict[str, Tuned]:
    """The tuned kernels that a module defines, in its order."""
    path = module.__file__
    return {n: k for n, k in vars(module).items() if isinstance(k, Tuned) and k.kernel.fn.__code__.co_filename == path}


def kernels(module: ModuleType) -> dict[str, Kernel]:
    """The kernels that a module defines, in its order."""
    path = module.__file__
    return {n: k for n, k in vars(module).items() if isinstance(k, Kernel) and k.fn.__code__.co_filename == path}
