"""Kills at random moments: a process is started, killed, and started again, so often as is asked."""

import os
import random
import signal
import time

import forked_workers

PATIENCE = 300.0  # seconds, only to end: a busy machine is slow


class Forked:
    """A driver (`drivers`) in processes of its own."""

    def __init__(self, driver):
        self.driver = driver
        self.progress = driver.progress
        self.check = driver.check

    def start(self, commits=None):
        self.process = forked_workers.context().Process(target=self.driver.go_on, args=(commits,))
        self.process.start()

    def runs(self):
        return self.process.exitcode is None

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()
        assert self.process.exitcode == -signal.SIGKILL

    def finish(self):
        """Some commits more, which nothing disturbs."""
        self.start(5)
        self.process.join(PATIENCE)
        assert self.process.exitcode == 0


def kill_repeatedly(victim, kills, longest=0.05):
    """Kill some processes when they begin, and most within a few commits after their first; then let one finish.

    `check` holds after each kill. Returns how many of them had made progress.
    """
    chance, with_progress = random.Random(kills), 0
    for _ in range(kills):
        before = victim.progress()
        victim.start()
        if chance.random() < 0.85:
            until = time.monotonic() + PATIENCE
            while victim.progress() == before:
                assert victim.runs(), "it ended by itself: it failed, or its input is too short"
                assert time.monotonic() < until, "it commits nothing"
                time.sleep(0.001)
        time.sleep(chance.uniform(0.0, longest))
        victim.kill()
        with_progress += victim.progress() > before
        victim.check(exactly=kills < 50)
    victim.finish()
    victim.check()
    return with_progress
