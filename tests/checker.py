"""The type checker of shapes: beartype, with Python's own rule that an int will do for a float."""

from __future__ import annotations

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
