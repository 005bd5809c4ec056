"""A report to read: plain text, in a terminal, in a notebook. `words` says what all three show."""
