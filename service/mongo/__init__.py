"""The MongoDB driver: connections, the write clock, batches of queries, ids and indexes."""
