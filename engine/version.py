"""The version of the distribution; pyproject.toml says the same, which a test checks."""

from yomi import __version__

VERSION = __version__
