"""`python -m taciturn`: the command."""

from taciturn.cli import main

main()
