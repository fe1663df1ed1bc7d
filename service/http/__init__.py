"""What every request passes: the connection, limits, authentication, errors, compression, the log."""
