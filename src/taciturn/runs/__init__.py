"""Learning from a file or a pipe in one pass, so that a crash at any moment neither repeats a round nor hides one."""
