"""The notebooks, one for each chapter: plain files that marimo runs; `python c05_weight.py` runs one as a program."""
