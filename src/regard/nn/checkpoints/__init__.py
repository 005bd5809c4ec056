"""Checkpoints: numbers that were learned elsewhere, in modules of ours.

hugging_face   config and tensors of a folder, or of a model of transformers → a model, and back
sources        where config and tensors come from;  config: what was said there, field by field
gpt2 llama bert     ours ↔ theirs as a table of names, and the config as arguments;  families: by model_type
names          how such a table is read, in both directions;  matched: what did not match
filling        a model around tensors that are there already;  tensors: safetensors files, checked
"""

from .hugging_face import from_hugging_face, to_hugging_face
from .matched import Matched, Misfit

__all__ = ["Matched", "Misfit", "from_hugging_face", "to_hugging_face"]
