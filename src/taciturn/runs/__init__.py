"""Learning from a file or a pipe in one pass, with checkpoints: after a crash, no round is repeated or lost."""
