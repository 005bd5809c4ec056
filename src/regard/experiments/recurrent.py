"""A recurrent layer, beside which attention is measured: h_t = LSTM(x_t, h_{t−1})."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Recurrent(nn.Module):
    """Rows in, states out; with `bias`, its forget gate starts at σ(bias) in place of about ½."""

    def __init__(self, dim: int, bias: float | None = None) -> None:
        super().__init__()
        self.lstm = nn.LSTM(dim, dim, batch_first=True)
        if bias is not None:
            forget = slice(dim, 2 * dim)  # PyTorch's order: input, forget, cell, output
            with torch.no_grad():
                self.lstm.bias_ih_l0[forget] = bias
                self.lstm.bias_hh_l0[forget] = 0

    def forward(self, x: Tensor) -> Tensor:
        """h (batch, rows, dim)."""
        states: Tensor = self.lstm(x)[0]
        return states

    def unrolled(self, x: Tensor) -> Tensor:
        """The same, with every step in sight."""
        cell = nn.LSTMCell(self.lstm.input_size, self.lstm.hidden_size, device=x.device, dtype=x.dtype)
        cell.load_state_dict({name.removesuffix("_l0"): tensor for name, tensor in self.lstm.state_dict().items()})
        state, states = None, []
        for row in x.unbind(dim=1):
            state = cell(row, state)
            states.append(state[0])
        return torch.stack(states, dim=1)
