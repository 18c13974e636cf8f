"""The program of the bundle: the command line, and the modules that tagkin starts as processes."""

from __future__ import annotations

import os
import runpy
import sys

# Programs that tagkin starts, such as the browser, need their own libraries, not the bundle's.
original = os.environ.pop("LD_LIBRARY_PATH_ORIG", None)
os.environ.pop("LD_LIBRARY_PATH", None)
if original is not None:
    os.environ["LD_LIBRARY_PATH"] = original
# A process of tagkin gets the bundle's libraries again, as one that a person starts.
os.environ["PYINSTALLER_RESET_ENVIRONMENT"] = "1"

if len(sys.argv) == 2 and os.path.isabs(sys.argv[1]) and os.path.isdir(sys.argv[1]):
    sys.argv[1:1] = ["-m", "tagkin.cli.dropped"]  # a folder that was dropped on the program
if sys.argv[1:2] == ["-m"]:  # as Python does
    module = sys.argv[2]
    del sys.argv[1:3]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
else:
    runpy.run_module("tagkin", run_name="__main__", alter_sys=True)
