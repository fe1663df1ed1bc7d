"""Reads files with one JSON object on each line: records in the form that `POST` accepts, and exports."""
