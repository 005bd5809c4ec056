"""Vocabularies of every kind, small: decode(a + b) is not decode(a) + decode(b) in most."""

from __future__ import annotations

from typing import Any

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers

from regard.inputs import BytePairs, Characters, Vocabulary, Words

TEXT = "the cat sat on the mat, the cat ate; it's déjà vu €€ 😀😀 the end. The END!"


def _wrapped(model: Any, before: Any, decoder: Any) -> BytePairs:
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer, tokenizer.decoder = before, decoder
    return BytePairs.wrap(tokenizer)


def _word_pieces() -> BytePairs:
    """BERT's: a piece that goes on begins with ##, all others have a space before them."""
    pieces = "[UNK] the cat sat ##s ##ing ##at m on , . ' it un ##do".split()
    model = models.WordPiece({piece: number for number, piece in enumerate(pieces)}, unk_token="[UNK]")
    return _wrapped(model, pre_tokenizers.BertPreTokenizer(), decoders.WordPiece())


def _metaspace() -> BytePairs:
    """SentencePiece's: a space is ▁, and the one at the beginning is left out."""
    pieces = "▁ ▁the ▁cat s ing ▁sat , . c a t h e ▁t he".split()
    model = models.BPE({piece: number for number, piece in enumerate(pieces)}, [("▁t", "he")])
    return _wrapped(model, pre_tokenizers.Metaspace(), decoders.Metaspace())


def _llama() -> BytePairs:
    """Llama's: as above, and characters that it has not are bytes."""
    pieces = [*(f"<0x{byte:02X}>" for byte in range(256)), *"▁ ▁the ▁cat s a t h e x".split()]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    model = models.BPE(vocabulary, [], byte_fallback=True, fuse_unk=True)
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(steps)
    return BytePairs.wrap(tokenizer)


def _suffixed() -> BytePairs:
    """CLIP's: a word ends with </w>, which is a space unless it is the last."""
    pieces = "the</w> c at</w> s at ,</w> end</w> t".split()
    model = models.BPE({piece: number for number, piece in enumerate(pieces)}, [], end_of_word_suffix="</w>")
    return _wrapped(model, pre_tokenizers.WhitespaceSplit(), decoders.BPEDecoder())


VOCABULARIES: dict[str, Vocabulary] = {
    "characters": Characters.of(TEXT, specials=("<end>",), unknown="�"),
    "words": Words.of(TEXT, specials=("<end>", "<pad>"), unknown="<?>"),
    "bytes": BytePairs.of("x", 258, specials=("<end>", "<pad>")),
    "byte pairs": BytePairs.of([TEXT, TEXT], 300, specials=("<end>", "<é>")),
    "word pieces": _word_pieces(),
    "metaspace": _metaspace(),
    "llama": _llama(),
    "suffixed": _suffixed(),
}
