"""`python -m tacit`: the command."""

from tacit.cli import main

main()
