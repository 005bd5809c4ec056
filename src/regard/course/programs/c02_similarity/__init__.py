"""Four measures of two vectors, in three languages."""
