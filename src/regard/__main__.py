"""`python -m regard`: the command `regard`."""

from __future__ import annotations

from .cli import main

main()
