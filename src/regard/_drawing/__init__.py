"""Drawing: SVG from numbers alone, in the colours of the page that shows it. The ledger and the course draw with it.

svg      Drawing, Frame: shapes, and where numbers lie among them
axes     Axis: round numbers along two sides of a frame
charts   chart: marks between two axes;   bars: a number for each name;   shades: a matrix of either sign
"""
