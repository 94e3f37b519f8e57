"""``python -m gridwise``."""

from gridwise.cli.main import main

if __name__ == "__main__":
    main()
