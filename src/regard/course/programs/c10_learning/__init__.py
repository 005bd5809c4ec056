"""Chapter 10: the backward pass of attention three times, and a reader of phrases that learns."""
