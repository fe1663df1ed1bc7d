"""Values as people and other programs write them: dates, zones, costs, texts and slugs."""
