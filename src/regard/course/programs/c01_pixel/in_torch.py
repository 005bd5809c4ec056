"""An image as rows, one for each patch: windows, side by side."""

import torch


def to_rows(image, size):
    """(height, width, colours) to (patches, size · size · colours)."""
    # a window of `size`, moved on by `size`, along each side
    windows = image.unfold(0, size, size).unfold(1, size, size)
    # (down, across, colours, lines, pixels): colours come last
    patches = torch.movedim(windows, 2, -1)
    return patches.flatten(0, 1).flatten(1)
