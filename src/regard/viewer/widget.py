"""The lens in a notebook: the page's own modules, joined, with the kernel in place of the server.

    { id, question, options } →        ← { id } with one buffer, or { id, error }

Questions are answered in threads of their own, so that a heavy tile does not hold up the kernel; one that the page no
longer wants is given up.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anywidget
import traitlets

from ..algebra.errors import RegardError
from .answering.answers import Answers
from .answering.packet import packed
from .joined import script, style
from .work import Stop, Stopped


class LensWidget(anywidget.AnyWidget):
    """A lens as a widget of Jupyter, VS Code, Colab and marimo.

    state:  where it begins: {"layer": 3, "head": 1, "view": "map"}
    height: in pixels
    """

    _esm = f"{script('widget')}\nexport default {{ render: renderWidget }};\n"
    _css = style()
    state = traitlets.Dict().tag(sync=True)
    height = traitlets.Int(720).tag(sync=True)

    def __init__(self, lens: Any, *, height: int = 720, **state: Any) -> None:
        self._answers = Answers(lens)
        self._workers = ThreadPoolExecutor(2, thread_name_prefix="lens")
        self._stops: dict[int, Stop] = {}
        self._lock = threading.Lock()
        super().__init__(state=state, height=height)
        self.on_msg(self._asked)

    def _asked(self, _: Any, message: Any, __: Any) -> None:
        """One message of the page: a question, or that it is no longer wanted."""
        if not isinstance(message, dict) or type(message.get("id")) is not int:
            return
        number = message["id"]
        if message.get("left"):
            with self._lock:
                stop = self._stops.get(number)
            if stop is not None:
                stop.set()
            return
        with self._lock:
            self._stops[number] = Stop()
        self._workers.submit(self._answer, number, message)

    def _answer(self, number: int, message: dict[str, Any]) -> None:
        stop = self._stops[number]
        try:
            found = packed(self._answers.answer(message.get("question", ""), message.get("options") or {}, stop))
        except Stopped:
            pass
        except RegardError as problem:
            self.send({"id": number, "error": str(problem)})
        else:
            self.send({"id": number}, [found])
        finally:
            with self._lock:
                self._stops.pop(number, None)

    def close(self) -> None:
        """Give up what is being answered."""
        self._workers.shutdown(wait=False, cancel_futures=True)
        super().close()
