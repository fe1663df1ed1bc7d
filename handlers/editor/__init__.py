"""The editor: forms to enter and change records, for holders of a token."""
