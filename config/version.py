"""The version of this release; the package takes it from here."""

VERSION = "0.1.0"
