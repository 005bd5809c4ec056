"""How the source of a formula is written, flavour by flavour.

source          the formula's own expressions, as plain Python; `array_source`: as NumPy and PyTorch
page            lines that a formatter leaves alone
python, arrays  the steps of `attention`; `python_weights`, `array_weights`: those from scores to weights
helpers         the small functions that a formula may need
module          the whole file
"""
