"""The command line: each module calls the library and prints the result."""
