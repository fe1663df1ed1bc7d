"""`kalends dump` and `kalends restore`: a copy of the whole database in one file."""
