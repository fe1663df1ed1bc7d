"""The version of this release, also of the package."""

VERSION = "0.2.0.dev0"
