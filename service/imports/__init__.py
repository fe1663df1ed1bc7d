"""`kalends import`: a reader for each source, and one path that stores what they read."""
