"""Comparable services built with other frameworks."""
