"""What events share with venues, organizers, categories and tags: links, usage counters, fan-out."""
