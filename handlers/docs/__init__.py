"""The API description and the documentation page."""
