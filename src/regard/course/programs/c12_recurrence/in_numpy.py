"""A recurrent net: whole rows at a time, but one time after the other."""

import numpy as np


def states(x, w, u):
    """Every state h_t."""
    h, every = np.zeros(len(w)), []
    for row in x:  # no way around this loop
        h = np.tanh(h @ w + row @ u)
        every.append(h)
    return np.stack(every)
