"""Four measures of two vectors: tensors."""

import torch


def measures(x, y):
    """Distance, dot product, cosine, correlation."""
    distance = torch.linalg.vector_norm(x - y)
    cosine = torch.cosine_similarity(x, y, dim=0)
    # both as rows: the correlation of each with each
    correlation = torch.corrcoef(torch.stack([x, y]))[0, 1]
    return torch.stack([distance, x @ y, cosine, correlation])
