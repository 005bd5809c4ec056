"""The pictures of the course, each a function from numbers to SVG; colours are variables of the page."""
