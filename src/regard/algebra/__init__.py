"""The formula: what may be written, what it means, what follows from it, and how it prints. Knows SymPy, not torch."""
