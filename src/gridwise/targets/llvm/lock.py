"""One lock for everything that enters LLVM: its global context is not for two threads at once, whatever the target."""

import threading

LLVM = threading.RLock()
