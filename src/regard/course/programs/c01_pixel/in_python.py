"""An image as rows, one for each patch: lists and loops."""


def to_rows(image, size):
    """One row for each patch, from left to right, then down."""
    rows = []
    for top in range(0, len(image), size):
        for left in range(0, len(image[0]), size):
            row = []
            for line in image[top : top + size]:
                for pixel in line[left : left + size]:
                    row += pixel  # its three colours
            rows.append(row)
    return rows
