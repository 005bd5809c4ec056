"""An image as rows, one for each patch: axes split, exchanged, joined."""


def to_rows(image, size):
    """(height, width, colours) to (patches, size · size · colours)."""
    height, width, colours = image.shape
    down, across = height // size, width // size
    # which patch down, which line in it, which patch across, which pixel in it, colour
    split = image.reshape(down, size, across, size, colours)
    # both "which patch" first, then what is inside of it
    patches = split.transpose(0, 2, 1, 3, 4)
    return patches.reshape(down * across, size * size * colours)
