"""An image as rows, one for each patch, in three languages."""
