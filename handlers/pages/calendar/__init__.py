"""The calendar: periods of time, and the events in them as a grid or a list."""
