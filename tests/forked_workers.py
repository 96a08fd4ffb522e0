"""Processes that start within milliseconds: forked from one that has imported what they need, and has no threads."""

import multiprocessing
import os
import sys
from multiprocessing import forkserver


def context():
    """Where `Process` comes from; its targets are functions of modules, not of test files.

    `pytest` is imported before, too: a process runs the main module of this one again.
    """
    made = multiprocessing.get_context("forkserver")
    if not getattr(context, "started", False):
        made.set_forkserver_preload(["pytest", "warm_drivers", "served"])
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # the server finds modules by it, in Python before 3.14
        try:
            forkserver.ensure_running()
        finally:
            del os.environ["PYTHONPATH"]
            os.environ |= {} if before is None else {"PYTHONPATH": before}
        context.started = True
    return made
