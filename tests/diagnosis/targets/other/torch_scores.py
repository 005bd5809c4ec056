"""Softmax of other scores, in PyTorch: cosines, distances, soft caps, matrices between query and key."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

FORMULAS = {
    "cosine_ten": "cosine_similarity",
    "cosine_root": "cosine_similarity",
    "cosine_function": "cosine_similarity",
    "CosineAttention": "cosine_similarity",
    "gaussian": "euclidean",
    "gaussian_expanded": "euclidean",
    "rbf_gamma": "euclidean",
    "kernel_smoother": "euclidean",
    "soft_cap_20": "soft_cap",
    "soft_cap_30": "soft_cap",
    "soft_cap_50": "soft_cap",
    "CappedAttention": "soft_cap",
    "bilinear": "bilinear",
    "general_score": "bilinear",
    "elliptical": "mahalanobis",
}


def cosine_ten(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Unit vectors, scores times 10."""
    q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
    return (10 * q @ k.transpose(-2, -1)).softmax(dim=-1) @ v


def cosine_root(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Unit vectors, scores times √d."""
    q = q / q.norm(dim=-1, keepdim=True)
    k = k / k.norm(dim=-1, keepdim=True)
    return torch.softmax(math.sqrt(q.shape[-1]) * (q @ k.transpose(-2, -1)), dim=-1) @ v


def cosine_function(q: Tensor, k: Tensor, v: Tensor, temperature: float = 0.1) -> Tensor:
    """PyTorch's cosine_similarity over a temperature."""
    cosines = F.cosine_similarity(q.unsqueeze(-2), k.unsqueeze(-3), dim=-1)
    return (cosines / temperature).softmax(-1) @ v


class CosineAttention(nn.Module):
    """One learned temperature, kept as its logarithm."""

    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.logit_scale = nn.Parameter(torch.tensor(10.0).log())
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        scale = self.logit_scale.clamp(max=math.log(100.0)).exp()
        attn = (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1) * scale).softmax(dim=-1)
        return self.proj((attn @ v).transpose(1, 2).flatten(2))


def gaussian(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """softmax(−‖q − k‖² / 2)."""
    distances = (q.unsqueeze(-2) - k.unsqueeze(-3)).square().sum(-1)
    return (-distances / 2).softmax(-1) @ v


def gaussian_expanded(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """‖q‖² − 2 q·k + ‖k‖²."""
    squares = q.square().sum(-1, keepdim=True) + k.square().sum(-1).unsqueeze(-2) - 2 * q @ k.transpose(-2, -1)
    return torch.softmax(-0.5 * squares, dim=-1) @ v


def rbf_gamma(q: Tensor, k: Tensor, v: Tensor, gamma: float = 0.3) -> Tensor:
    """exp(−γ ‖q − k‖²), normalised."""
    return torch.softmax(-gamma * torch.cdist(q, k, compute_mode="donot_use_mm_for_euclid_dist") ** 2, dim=-1) @ v


def kernel_smoother(queries: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Nadaraya and Watson: kernels over their total, the nearest key's taken as 1."""
    squares = (queries[..., :, None, :] - keys[..., None, :, :]).pow(2).sum(dim=-1)
    kernels = torch.exp(-(squares - squares.amin(-1, keepdim=True)) / 2)
    weights = kernels / kernels.sum(-1, keepdim=True)
    return weights @ values, weights


def _capped(q: Tensor, k: Tensor, cap: float) -> Tensor:
    return cap * torch.tanh(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]) / cap)


def soft_cap_20(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Scores within ±20."""
    return _capped(q, k, 20.0).softmax(-1) @ v


def soft_cap_30(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Scores within ±30."""
    return _capped(q, k, 30.0).softmax(-1) @ v


def soft_cap_50(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Scores within ±50, masked afterwards: True admits."""
    scores = _capped(q, k, 50.0)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(-1) @ v


class CappedAttention(nn.Module):
    """Several heads, scores within ±softcap."""

    def __init__(self, hidden_size, num_heads, softcap=30.0):
        super().__init__()
        self.num_heads, self.softcap = num_heads, softcap
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
            nn.Linear(hidden_size, hidden_size, bias=False) for _ in range(4)
        )

    def forward(self, x):
        layers = (self.q_proj, self.k_proj, self.v_proj)
        q, k, v = (layer(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for layer in layers)
        return self.o_proj((_capped(q, k, self.softcap).softmax(-1) @ v).transpose(1, 2).flatten(2))


def bilinear(q: Tensor, k: Tensor, v: Tensor, M: Tensor) -> Tensor:
    """softmax(qᵀ M k)."""
    return torch.softmax(q @ M @ k.transpose(-2, -1), dim=-1) @ v


def general_score(query: Tensor, keys: Tensor, values: Tensor, W: Tensor) -> tuple[Tensor, Tensor]:
    """The same by letters, with the weights."""
    weights = torch.einsum("...id,de,...je->...ij", query, W, keys).softmax(-1)
    return weights @ values, weights


def elliptical(q: Tensor, k: Tensor, v: Tensor, P: Tensor) -> Tensor:
    """softmax(−(q − k)ᵀ P (q − k) / 2)."""
    between = q.unsqueeze(-2) - k.unsqueeze(-3)
    return torch.softmax(-torch.einsum("...d,de,...e->...", between, P, between) / 2, dim=-1) @ v
