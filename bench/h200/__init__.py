"""Everything that needs an NVIDIA GPU, in one run: ``python -m bench.h200``."""
