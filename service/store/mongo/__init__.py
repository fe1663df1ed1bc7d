"""The MongoDB driver: connections, batching, IDs and indexes; knows nothing of events."""
