"""What the CPU and PTX targets share: a printer of LLVM IR (``llvmlite.binding`` reads the text)."""
