"""One text from another: p(target_{r+1} | source, target_1 … target_r)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...inputs.vocabularies import Vocabulary
from ...nn.encoder_decoder import EncoderDecoder
from ..batch import Batch
from ..data.pair_batches import PairBatch, PairBatches
from ..data.pairs import END, START, Pairs, Texts, pair_vocabulary, read_pairs
from ..folder import Folder, read_json, write_json
from ..settings import PairData, Settings
from .parts import parts_of

WRITTEN = 512  # held-out pairs whose whole target is written when it is measured; all of them at the end


class Translations:
    """Pairs of texts, and an encoder–decoder that makes the second of the first."""

    data: ClassVar[type[PairData]] = PairData
    unit: ClassVar[str] = "nats for each token"

    def __init__(self, pairs: Pairs, vocabulary: Vocabulary, settings: Settings) -> None:
        self.pairs, self.vocabulary, self.settings = pairs, vocabulary, settings
        self.batches = PairBatches(pairs, vocabulary, settings.learning.batch, settings.learning.seed)

    # -- data ---------------------------------------------------------------------------------------------------

    @classmethod
    def read(cls, settings: Settings, vocabulary: Vocabulary | None = None) -> Self:
        """From their source, with a vocabulary learned from them, or one that a model has already."""
        data: Any = settings.data
        pairs = read_pairs(data.source, held_out=data.held_out, longest=data.longest)
        return cls(pairs, vocabulary or pair_vocabulary(pairs, data.tokens), settings)

    @classmethod
    def kept(cls, folder: Folder, settings: Settings) -> Self:
        """From the folder of a run."""
        told = read_json(folder.data / "pairs.json")
        training, held_out = (Texts(*map(tuple, told[part].values())) for part in ("training", "held_out"))
        pairs = Pairs(training, held_out, told["name"], tuple(told["notes"]))
        return cls(pairs, Vocabulary.load(folder.vocabulary), settings)

    def keep(self, folder: Folder) -> None:
        """Write the pairs and the vocabulary into the folder of a run."""
        folder.data.mkdir(exist_ok=True)
        write_json(folder.data / "pairs.json", asdict(self.pairs))
        self.vocabulary.save(folder.vocabulary)

    @property
    def notes(self) -> list[str]:
        """What is learned from, in words."""
        pairs = self.pairs
        first = (
            f"{pairs.name}: {len(pairs.training):,} pairs to learn from, {len(pairs.held_out):,} held out; "
            f"{len(self.vocabulary)} different tokens"
        )
        return [first, *pairs.notes]

    # -- learning -----------------------------------------------------------------------------------------------

    def model(self) -> EncoderDecoder:
        """A model of the settings, with new parameters."""
        shape, longest = self.settings.shape, max(self.batches.longest)
        return EncoderDecoder(
            len(self.vocabulary), shape.dim, shape.depth, shape.heads, **parts_of(shape, longest)
        )  # fmt: skip

    def batch(self, step: int) -> Batch:
        """The pairs of a step."""
        return _batch(self.batches[step])

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """−Σ log p(output)."""
        lengths = {"source_lengths": batch["source_lengths"], "target_lengths": batch["target_lengths"]}
        logits = model(batch["source"], batch["inputs"], **lengths)
        return functional.cross_entropy(
            logits.float().flatten(0, 1), batch["outputs"].flatten(), reduction="sum", ignore_index=self.batches.pad
        )

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """On all that was held out; written out for some of it, the same each time."""
        return self._measured(model, WRITTEN)

    def final(self, model: nn.Module) -> dict[str, float]:
        """On all that was held out, all of it written out."""
        return self._measured(model, len(self.pairs.held_out))

    def _measured(self, model: nn.Module, written: int) -> dict[str, float]:
        device = next(model.parameters()).device
        nats, count, right, tried = 0.0, 0, 0, 0
        for pairs in self.batches.held_out(64):
            batch = _batch(pairs).to(device)
            nats, count = nats + float(self.loss(model, batch)), count + batch.count
            if tried < written:
                found = self.write(model, batch["source"], batch["source_lengths"])
                wanted = [self.pairs.held_out.targets[row] for row in pairs.rows.tolist()]
                right, tried = right + sum(map(str.__eq__, found, wanted)), tried + len(wanted)
        return {"loss": nats / count, "exact": right / tried}

    # -- to look at ---------------------------------------------------------------------------------------------

    def write(self, model: Any, source: Tensor, lengths: Tensor) -> list[str]:
        """The likeliest target of each source, token by token."""
        found = model.generate(
            source, [self.vocabulary.id(START)], source_lengths=lengths, new=max(self.batches.longest[1], 1),
            end=self.vocabulary.id(END), vocabulary=self.vocabulary,
        )  # fmt: skip
        return [self.vocabulary.decode(one.ids, drop=(START, END)) for one in found]

    def answer(self, model: nn.Module, asked: str, length: int) -> str:
        """A source, and what the model makes of it."""
        ids = torch.tensor([self.vocabulary.encode(asked)], device=next(model.parameters()).device)
        (written,) = self.write(model, ids, torch.tensor([ids.shape[1]], device=ids.device))
        return f"{asked} → {written}"

    def sample(self, model: nn.Module, length: int) -> str:
        """What it makes of the first held-out sources."""
        device = next(model.parameters()).device
        pairs = next(iter(self.batches.held_out(max(1, min(length, 12)))))
        written = self.write(model, pairs.source.to(device), pairs.source_lengths.to(device))
        texts = self.pairs.held_out
        lines = (
            f"{texts.sources[row]} → {made}{'' if made == texts.targets[row] else f'   ✗ {texts.targets[row]}'}"
            for row, made in zip(pairs.rows.tolist(), written, strict=True)
        )
        return "\n".join(lines)


def _batch(pairs: PairBatch) -> Batch:
    tensors = pairs._asdict()
    rows = [f"training pair {int(row)}" for row in tensors.pop("rows")]
    return Batch(tensors, int(torch.as_tensor(pairs.target_lengths).sum()), rows)
