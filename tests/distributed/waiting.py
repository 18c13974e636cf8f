"""What workers import as well, and so imports little."""

import time
from pathlib import Path


def wait_for(file: Path) -> None:
    """Until another process has made a file."""
    while not file.exists():
        time.sleep(0.02)
