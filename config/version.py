"""The version of this release, also of the package."""

VERSION = "0.1.0"
