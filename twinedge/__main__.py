"""``python -m twinedge``: the command line."""

from twinedge.cli import main

if __name__ == "__main__":
    main()
