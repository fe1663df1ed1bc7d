"""What others build such a service with."""
