"""The version of the distribution; pyproject.toml says the same, which a test checks."""

VERSION = "0.1.0"
