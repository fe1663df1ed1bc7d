"""What has changed in records: the change feed, and the change log that is made from it."""
