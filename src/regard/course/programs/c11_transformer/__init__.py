"""Chapter 11: a block three times."""
