"""The command line: each module asks the library and prints."""
