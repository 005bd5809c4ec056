"""The same thing in plain Python, NumPy and PyTorch, a folder for each chapter; pages show these files and run them."""
