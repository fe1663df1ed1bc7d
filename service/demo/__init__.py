"""Demo data: a season of events to try the service with."""
