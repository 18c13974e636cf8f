"""``python -m tagkin.cli`` is ``tagkin``."""

from tagkin.cli.app import main

main()
