"""What no service on this machine can be faster than."""
