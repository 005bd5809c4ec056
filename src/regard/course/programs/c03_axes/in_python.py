"""Mahalanobis distance by the triangle of Cholesky: lists and loops."""

import math


def triangle(S):
    """L, zero above its diagonal, with L Lᵀ = S."""
    n = len(S)
    L = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            rest = S[i][j] - sum(L[i][a] * L[j][a] for a in range(j))
            L[i][j] = math.sqrt(rest) if i == j else rest / L[j][j]
    return L


def mahalanobis(x, y, S):
    """‖z‖ with L z = x − y: A = L⁻¹ whitens."""
    L, z = triangle(S), []
    for i, row in enumerate(L):
        rest = x[i] - y[i] - sum(row[a] * z[a] for a in range(i))
        z.append(rest / row[i])
    return math.sqrt(sum(one * one for one in z))
