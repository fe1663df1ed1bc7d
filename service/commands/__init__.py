"""The command-line parser and the `token` command."""
