"""The version of the library."""

VERSION = "0.1.0.dev0"
