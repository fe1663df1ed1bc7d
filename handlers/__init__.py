"""HTTP handlers: parse requests, call the store, build responses."""
