"""`python -m taciturn`: the command."""

from taciturn.cli.app import main

main()
