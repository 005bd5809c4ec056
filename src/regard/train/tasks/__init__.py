"""What is learned: a model, its loss on a batch, its measure on what was held out, and something to look at.

text    GPT: the next token                    nats for each token, for each character
images  ViT: the class of an image             nats, and the share that is right
pairs   EncoderDecoder: one text from another  nats for each token, and the share that is right as a whole
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

MODULES = {"text": "Text", "images": "Pictures", "pairs": "Translations"}


def kind_of(task: str) -> Any:
    """The class of a task, by its name on the command line."""
    return getattr(import_module(f".{task}", __package__), MODULES[task])
