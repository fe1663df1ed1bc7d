"""Access to MongoDB: connections, the write clock, batches of queries, ids and indexes."""
