"""``python -m tagkin`` is ``tagkin``."""

from tagkin.cli.app import main

if __name__ == "__main__":
    main()
