"""The command-line parser, its options, and the commands `token`, `webhook` and `migrate`."""
