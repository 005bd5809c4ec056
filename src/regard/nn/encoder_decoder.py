"""From one text to another: translation, as the first transformer did it.

memory = Encoder(E_s[source])        x = Decoder(E_t[target], memory)        logits = x E_tᵀ
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from .._checks import check_count
from ..algebra.errors import CallError
from ..attention import Attention
from ..inputs.positions.added import Sinusoidal
from ..inputs.positions.base import Position
from .cache import Cache
from .generation.prompts import for_each
from .generation.writing import generate, stream
from .initial import initialise
from .masks import read_lengths
from .models import Model, check_ids, remembered
from .stacks import Decoder, Encoder
from .style import Style
from .summary import Sizes


class EncoderDecoder(Model):
    """A source text in, the logits of the target's next token out.

    tokens:    the sizes of both vocabularies, (source, target); one number where they share one vocabulary
    attention: by which the source reads itself, and the target what came before in it
    cross:     by which the target reads the source
    position:  of both

    >>> import torch
    >>> model = EncoderDecoder((100, 90), dim=32, depth=2, heads=4)
    >>> model(torch.tensor([[5, 7, 11]]), torch.tensor([[1, 2]])).shape
    torch.Size([1, 2, 90])
    """

    @remembered
    def __init__(
        self,
        tokens: int | tuple[int, int],
        dim: int,
        depth: int,
        heads: int,
        attention: Attention = Attention(),  # noqa: B008 - a value that never changes
        cross: Attention = Attention(),  # noqa: B008
        position: Position = Sinusoidal(),  # noqa: B008
        style: Style = Style(),  # noqa: B008
        *,
        kv_heads: int | None = None,
        **options: Any,
    ) -> None:
        self.tokens = _vocabularies(tokens)
        check_count("dim", dim, 1)
        self.source = nn.Embedding(self.tokens[0], dim)
        self.target = self.source if isinstance(tokens, int) else nn.Embedding(self.tokens[1], dim)
        self.encoder = Encoder(dim, depth, heads, kv_heads, attention, position, style, **options)
        self.decoder = Decoder(dim, depth, heads, kv_heads, attention, position, style, cross=cross, **options)
        self.head = nn.Linear(dim, self.tokens[1], bias=False)
        initialise(self.source)
        initialise(self.target)
        self.head.weight = self.target.weight

    @property
    def longest(self) -> int | None:
        """How many tokens a text may have; None for any."""
        return self.decoder.longest

    def forward(
        self, source: Tensor, target: Tensor, *, source_lengths: Any = None, target_lengths: Any = None
    ) -> Tensor:
        """Logits (batch, rows, target tokens), in row r those of the token that follows row r of the target.

        source_lengths, target_lengths: how many of the ids belong to each text: those behind are filling
        """
        source_lengths = _lengths(source_lengths, source, self.tokens[0], "source")
        target_lengths = _lengths(target_lengths, target, self.tokens[1], "target")
        memory = self.encode(source, lengths=source_lengths)
        return self.decode(target, memory, memory_lengths=source_lengths, lengths=target_lengths)

    def encode(self, source: Tensor, *, lengths: Any = None) -> Tensor:
        """The memory (batch, keys, dim) of a source (batch, keys)."""
        memory: Tensor = self.encoder(self.source(check_ids(source, self.tokens[0], "source")), lengths=lengths)
        return memory

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        *,
        lengths: Any = None,
        memory_lengths: Any = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Logits (batch, rows, target tokens) after a target, having read the memory."""
        x = self.target(check_ids(target, self.tokens[1], "target"))
        x = self.decoder(x, memory, lengths=lengths, memory_lengths=memory_lengths, cache=cache)
        logits: Tensor = self.head(x)
        return logits

    def sizes(self, part: str, rows: int) -> Sizes:
        """Source and target are taken to be of one length."""
        return Sizes(rows, rows, memory=rows)

    def generate(self, source: Tensor, prompt: Any, *, source_lengths: Any = None, **options: Any) -> list[Any]:
        """A target for each text of the source, (batch, keys): a list of `Generation`.

        prompt:         what the targets begin with, a start token at least: ids, or a text with vocabulary=; one for
                        all of them, or a list with one for each
        source_lengths: how many of the ids belong to each source
        options:        new, sampling, stop, end, vocabulary, seed, cache and progress, as in `regard.nn.generate`
        """
        prompts = for_each(prompt, len(check_ids(source, self.tokens[0], "source")), options.get("vocabulary"))
        found: list[Any] = generate(Translation(self, source, source_lengths), prompts, **options)
        return found

    def stream(self, source: Tensor, prompt: Any, *, source_lengths: Any = None, **options: Any) -> Iterator[Any]:
        """The target of one source, (1, keys), as it is written: pieces of text, or ids without a vocabulary.

        options: new, sampling, stop, end, vocabulary, seed and cache, as in `regard.nn.stream`
        """
        texts = len(check_ids(source, self.tokens[0], "source"))
        if texts != 1:
            raise CallError(f"source: one at a time, (1, keys); got {texts}; stream each, or call generate on all")
        return stream(Translation(self, source, source_lengths), prompt, **options)


class Translation(nn.Module):
    """A model that has read its source: ids of the target in, logits out, as `generate` asks for them."""

    def __init__(self, model: EncoderDecoder, source: Tensor, lengths: Any) -> None:
        super().__init__()
        self.model, self.longest = model, model.longest
        self.source, self.lengths = source, _lengths(lengths, source, model.tokens[0], "source")
        self.memory: Tensor | None = None

    def forward(self, ids: Tensor, *, lengths: Any = None, cache: Cache | None = None) -> Tensor:
        if self.memory is None:
            self.memory = self.model.encode(self.source, lengths=self.lengths)
        return self.model.decode(ids, self.memory, lengths=lengths, memory_lengths=self.lengths, cache=cache)

    def keep(self, texts: Tensor) -> None:
        """The sources of these texts; the others are written."""
        assert self.memory is not None
        self.memory = self.memory[texts]
        self.lengths = None if self.lengths is None else self.lengths[texts]


def _vocabularies(tokens: Any) -> tuple[int, int]:
    """The sizes of both."""
    both = tokens if isinstance(tokens, tuple | list) else (tokens, tokens)
    if len(both) != 2:
        raise CallError(f"tokens: one size for both vocabularies, or two, (source, target); got {tokens!r}")
    for size in both:
        check_count("tokens", size, 1)
    return both[0], both[1]


def _lengths(lengths: Any, ids: Tensor, tokens: int, of: str) -> Tensor | None:
    """Lengths under the name that the caller gave them."""
    return None if lengths is None else read_lengths(lengths, check_ids(ids, tokens, of), f"{of}_lengths", of)
