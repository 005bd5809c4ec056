"""A text, token after token: p(t_{r+1} | t_1 … t_r)."""

from __future__ import annotations

from typing import Any, ClassVar, Self, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...algebra.errors import CallError
from ...inputs.vocabularies import Vocabulary
from ...nn.generation.sampling import Sampling
from ...nn.generation.writing import generate
from ...nn.gpt import GPT
from ..batch import Batch
from ..data.corpora import Corpus, read_text
from ..data.splits import characters_needed, split
from ..data.tokens import Tokens, encoded, vocabulary_of
from ..data.windows import HeldOutWindows, TextBatches
from ..folder import Folder, read_json, write_json, write_text
from ..learner import seed_of
from ..settings import Settings, TextData
from .parts import parts_of

NOISE = 1 << 20  # the part of a step that its noise is drawn for: no batch has so many
BEGINNING = 16  # tokens that a sample begins with
GLANCE = 512  # windows that are measured while learning; all of them at the end
UNKNOWN_SHARE = 0.01  # of a text that a vocabulary may not know


class Text:
    """Windows of a text, and a GPT that reads them."""

    data: ClassVar[type[TextData]] = TextData
    unit: ClassVar[str] = "nats for each token"

    def __init__(self, tokens: Tokens, settings: Settings) -> None:
        self.tokens, self.settings = tokens, settings
        data, learning = cast(TextData, settings.data), settings.learning
        context = data.context
        self.batches = TextBatches(tokens.ids, context, learning.batch, learning.seed, tokens.training)
        self.held_out = HeldOutWindows(tokens.ids, context, learning.batch, tokens.held_out)
        self.glance = self.held_out.part(GLANCE)
        self.rows, self.noise = context, data.noise

    # -- data ---------------------------------------------------------------------------------------------------

    @classmethod
    def read(cls, settings: Settings, vocabulary: Vocabulary | None = None) -> Self:
        """From its source, with a vocabulary learned from it, or one that a model has already."""
        return cls._of(read_text(settings.data.source), settings, vocabulary)

    @classmethod
    def kept(cls, folder: Folder, settings: Settings) -> Self:
        """From the folder of a run."""
        told = read_json(folder.data / "text.json")
        text = (folder.data / "text.txt").read_bytes().decode("utf-8")
        corpus = Corpus(text, told["name"], told["source"], tuple(told["notes"]))
        return cls._of(corpus, settings, Vocabulary.load(folder.vocabulary))

    @classmethod
    def _of(cls, corpus: Corpus, settings: Settings, vocabulary: Vocabulary | None) -> Self:
        data: Any = settings.data
        corpus.require(characters_needed(data.context, data.held_out))
        parts = split(corpus, data.held_out)
        known = vocabulary or vocabulary_of(parts.training_texts, data.tokens)
        tokens = encoded(parts, known)
        _check_known(tokens)
        return cls(tokens, settings)

    def keep(self, folder: Folder) -> None:
        """Write the text and the vocabulary into the folder of a run."""
        corpus = self.tokens.split.corpus
        folder.data.mkdir(exist_ok=True)
        write_text(folder.data / "text.txt", corpus.text)
        told = {"name": corpus.name, "source": str(corpus.source), "notes": list(corpus.notes)}
        write_json(folder.data / "text.json", told)
        self.tokens.vocabulary.save(folder.vocabulary)

    @property
    def notes(self) -> list[str]:
        """What is learned from, in words."""
        tokens, corpus = self.tokens, self.tokens.split.corpus
        learned = sum(stop - start for start, stop in tokens.training)
        first = (
            f"{corpus.name}: {len(corpus):,} characters; {learned:,} tokens to learn from, "
            f"{tokens.held_out_count:,} held out; {len(tokens.vocabulary)} different ones"
        )
        return [first, *corpus.notes]

    # -- learning -----------------------------------------------------------------------------------------------

    def model(self) -> GPT:
        """A model of the settings, with new parameters."""
        shape = self.settings.shape
        return GPT(len(self.tokens.vocabulary), shape.dim, shape.depth, shape.heads, **parts_of(shape, self.rows))

    def batch(self, step: int) -> Batch:
        """The windows of a step."""
        windows = self.batches[step]
        places = [Place(self.tokens, int(at)) for at in windows.positions]
        inputs = self._noisy(windows.inputs, step)
        return Batch({"inputs": inputs, "targets": windows.targets}, windows.targets.numel(), places)

    def _noisy(self, ids: Tensor, step: int) -> Tensor:
        """Some tokens exchanged for any others, a different share in each window: what is repeated is learned later."""
        if not self.noise:
            return ids
        drawn = torch.Generator().manual_seed(seed_of(self.settings.learning.seed, step, NOISE))
        shares = self.noise * torch.rand((len(ids), 1), generator=drawn)
        others = torch.randint(len(self.tokens.vocabulary), ids.shape, generator=drawn)
        return torch.where(torch.rand(ids.shape, generator=drawn) < shares, others, ids)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """−Σ log p(target)."""
        return _nats(model(batch["inputs"]), batch["targets"])

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """On some of what was held out, the same each time."""
        return self._measured(model, self.glance)

    def final(self, model: nn.Module) -> dict[str, float]:
        """On all that was held out."""
        return self._measured(model, self.held_out)

    def _measured(self, model: nn.Module, windows: HeldOutWindows) -> dict[str, float]:
        device = next(model.parameters()).device
        nats = sum(float(_nats(model(some.inputs.to(device)), some.targets.to(device))) for some in windows)
        loss = nats / windows.count
        per_character = self.tokens.held_out_count / self.tokens.held_out_characters
        return {"loss": loss, "nats_per_character": loss * per_character}

    # -- to look at ---------------------------------------------------------------------------------------------

    def sample(self, model: nn.Module, length: int) -> str:
        """What the model writes after the beginning of something that it has not read."""
        start = self.tokens.held_out[0].start
        return self.answer(model, self.tokens.vocabulary.decode(self.tokens.ids[start : start + BEGINNING]), length)

    def answer(self, model: nn.Module, asked: str, length: int) -> str:
        """A text, and what the model writes after it."""
        reader = Window(model, self.rows)
        found = generate(
            reader, asked, new=length, vocabulary=self.tokens.vocabulary, sampling=WARM, seed=0, cache=False
        )
        return f"{asked}{found.text}"


WARM = Sampling(temperature=0.8)


class Window(nn.Module):
    """A model that reads the last tokens alone, as many as it has learned to."""

    def __init__(self, model: Any, rows: int) -> None:
        super().__init__()
        self.model, self.rows = model, rows

    def forward(self, ids: Tensor, **_: Any) -> Tensor:
        """Logits (1, rows, tokens) of the last rows."""
        logits: Tensor = self.model(ids[:, -self.rows :])
        return logits

    def after(self, ids: Tensor, **_: Any) -> Tensor:
        """Logits (1, tokens) of the token that comes next."""
        logits: Tensor = self.model.after(ids[:, -self.rows :])
        return logits


class Place:
    """Where a window begins; worked out when somebody asks."""

    def __init__(self, tokens: Tokens, at: int) -> None:
        self.tokens, self.at = tokens, at

    def __str__(self) -> str:
        return f"characters from {self.tokens.character(self.at):,}"


def _nats(logits: Tensor, targets: Tensor) -> Tensor:
    """In float32, whatever the products were in; targets of −100 count nothing."""
    return functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), reduction="sum")


def _check_known(tokens: Tokens) -> None:
    """Refuse a vocabulary that is that of another text."""
    unknown = getattr(tokens.vocabulary, "unknown", None)
    if unknown is None:
        return
    strange = float((tokens.ids == tokens.vocabulary.id(unknown)).mean())
    if strange > UNKNOWN_SHARE and not isinstance(tokens.vocabulary, _worded()):
        raise CallError(
            f"vocabulary: one that knows the text; got one that does not know {strange:.1%} of it; "
            "is it that of another text? Learn a new model without --start"
        )


def _worded() -> type[Any]:
    from ...inputs.text import Words

    return Words
