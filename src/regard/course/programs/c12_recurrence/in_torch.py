"""A recurrent net, by PyTorch's own module: the loop is inside."""

import torch


def states(x, w, u):
    """Every state h_t."""
    rnn = torch.nn.RNN(len(u), len(w), bias=False, dtype=x.dtype)
    with torch.no_grad():
        rnn.weight_hh_l0.copy_(w.T)
        rnn.weight_ih_l0.copy_(u.T)
        every, _ = rnn(x)
    return every
