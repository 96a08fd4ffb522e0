"""Something else happens in the middle of a function: at any bytecode of a file, or when a timer's signal comes."""

import contextlib
import itertools
import signal
import sys
import threading

from taciturn.accounting import ledger, memory_book
from taciturn.kernel.accounting import ledger_rules

LEDGER = tuple(module.__file__ for module in (ledger, ledger_rules, memory_book))
"""The files of a ledger in memory."""


class At:
    """Within this block `action` is called once, before the bytecode number `step` of those run in some files.

    What a signal handler or a finalizer could do there, and, if the action raises, an interrupt. `reached` says
    whether there were as many bytecodes.
    """

    def __init__(self, step, files, action):
        self.step, self.action, self.seen = step, action, 0
        self.files = (files,) if isinstance(files, str) else files

    @property
    def reached(self):
        return self.seen >= self.step

    def __enter__(self):
        self.before = sys.gettrace()
        sys._getframe().f_trace_opcodes = True  # first: Python 3.12 looks for such a frame when it starts to trace
        sys.settrace(self._called)
        return self

    def __exit__(self, *_):
        sys.settrace(self.before)

    def _called(self, frame, event, argument):
        if frame.f_code.co_filename not in self.files:
            return None
        frame.f_trace = self._stepped  # first: Python 3.13 looks for it when it is asked for opcodes
        frame.f_trace_opcodes = True
        return self._stepped

    def _stepped(self, frame, event, argument):
        if event == "opcode":
            self.seen += 1
            if self.seen == self.step:
                sys.settrace(None)  # the rest runs at its usual speed
                self.action()
        return self._stepped


def every_step(attempt, least):
    """`attempt(step)` for every step, up to the first that is not reached, which it says by returning False."""
    for step in itertools.count(1):
        if not attempt(step):
            assert step > least, f"only {step - 1} bytecodes were interrupted"
            return


def within(seconds, work):
    """What `work` returns or raises in a thread of its own, which must not wait longer for anything."""
    came = []

    def run():
        try:
            came.append((work(), None))
        except Exception as error:
            came.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert came, "it waits for ever"
    result, error = came[0]
    if error is not None:
        raise error
    return result


@contextlib.contextmanager
def on_alarm(handler):
    """`handler(number, frame)` is called when the timer of `signal.setitimer` rings."""
    before = signal.signal(signal.SIGALRM, handler)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
