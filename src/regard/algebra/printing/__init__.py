"""A formula as text: our own syntax, Unicode, LaTeX, MathML, and code. Each is one reading of the fold."""
