"""Somebody's code in a child process: whatever it does, an answer or a reason comes back, and no process stays."""

# ruff: noqa: T201 - targets print
from __future__ import annotations

import ctypes
import functools
import math
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import jax
import numpy as np
import pytest
import torch

from regard import CallError, KindError, MissingExtra
from regard.diagnosis.sandbox import memory, process
from regard.diagnosis.sandbox.limits import Limits, Stopped, TargetError, died, out_of_memory
from regard.diagnosis.sandbox.loading import Place
from regard.diagnosis.sandbox.printed import Printed, Tally
from regard.diagnosis.sandbox.process import Call, Child, Here, Runner, runner_for

ABOUT = "a call with q (2, 3, 5, 7)"
PATIENCE = 60  # seconds that an end may take on a machine that has other work
SMALL = Limits(memory=2**28, printed=5_000)
SHORT = Limits(call_seconds=0.8)  # a busy machine answers a small question within it
WORD = "stands in this module alone"


def asked(target: Any, *args: Any, limits: Limits | None = SMALL, **kwargs: Any) -> Any:
    with runner_for(target, limits) as runner:
        return runner.ask(Call(args, kwargs, ABOUT))


def alive(pid: int) -> bool:
    """Whether the process runs; one that ended and waits to be counted does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def gone(pid: int) -> bool:
    until = time.monotonic() + PATIENCE
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not alive(pid)


# -- targets -----------------------------------------------------------------------------------------------------


def loops() -> None:
    while True:
        pass


def sleeps() -> None:
    time.sleep(1000)


def holds_the_interpreter() -> int:
    return len(str(7 ** (10**7 + 1) % 11 ** (10**7)))  # one long operation of C, during which no other thread runs


def prints() -> None:
    while True:
        print("so be it")


def prints_below_python() -> None:
    while True:
        os.write(1, b"so be it\n" * 100)


def hoards_numpy() -> None:
    kept = []
    while True:
        kept.append(np.ones(2**20))


def hoards_torch() -> None:
    kept = []
    while True:
        kept.append(torch.ones(2**22))


def hoards_python() -> None:
    kept: list[Any] = []
    while True:
        kept.append([0.0] * 2**20)


def crashes() -> None:
    ctypes.string_at(0)


def leaves() -> None:
    os._exit(3)


def exits() -> None:
    sys.exit("enough")


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def well() -> str:
    return WORD


STOPS: list[tuple[Callable[[], Any], str, str]] = [
    (loops, "time", "one call took more than 0.8 s (a call with q (2, 3, 5, 7)); look for a loop"),
    (sleeps, "time", "or allow more with Limits(call_seconds=1.6)"),
    (holds_the_interpreter, "time", "one call took more than 0.8 s"),
    (prints, "printing", "it printed more than 5000 bytes (a call with q (2, 3, 5, 7)), beginning with 'so be it\\n"),
    (prints_below_python, "printing", "allow more with Limits(printed=10000)"),
    (hoards_numpy, "memory", "it wanted more than 256 MiB of memory (a call with q (2, 3, 5, 7)); look for what grows"),
    (hoards_python, "memory", "allow more with Limits(memory=536870912)"),
    (hoards_torch, "memory", "it wanted more than 256 MiB of memory"),
    (crashes, "crash", "its process crashed with SIGSEGV: it read or wrote memory that is not its own (a call with q"),
    (killed, "crash", "SIGKILL: killed from outside"),
    (leaves, "exit", "it ended the program by exit code 3, as os._exit(3) does (a call with q (2, 3, 5, 7)); return"),
    (exits, "exit", "it ended the program by sys.exit('enough') (a call with q (2, 3, 5, 7))"),
]


# -- stops -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("target", "why", "text"), STOPS, ids=[target.__name__ for target, *_ in STOPS])
def test_a_stop_says_why_and_a_new_child_answers(target: Callable[[], Any], why: str, text: str) -> None:
    """Three questions, two processes, none left."""
    with Child(either_of(target), SHORT if why == "time" else SMALL) as runner:
        before = runner.ask(Call(("pid",)))
        with pytest.raises(Stopped) as stopped:
            runner.ask(Call(("trouble",), about=ABOUT))
        assert gone(before)
        after = runner.ask(Call(("pid",)))
    assert stopped.value.why == why
    assert str(stopped.value).startswith("stopped: ")
    assert text in str(stopped.value)
    assert after != before
    assert gone(after)


def either_of(trouble: Callable[[], Any]) -> Callable[[str], Any]:
    return lambda what: os.getpid() if what == "pid" else trouble()


def test_stopped_survives_a_pickle() -> None:
    stopped = pickle.loads(pickle.dumps(Stopped("time", "too long")))
    assert (stopped.why, str(stopped)) == ("time", "stopped: too long")


def test_the_session_ends_when_its_time_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(seconds=1.2, call_seconds=1.1)
    with Child(time.sleep, limits) as runner:
        runner.ask(Call((0.15,)))
        with pytest.raises(Stopped, match=r"all calls together took more than 1\.2 s \(a long one\); allow more"):
            runner.ask(Call((99,), about="a long one"))
        monkeypatch.setattr(process, "Connection", None)  # no child is started for it
        with pytest.raises(Stopped, match=r"1\.2 s \(before a call\)") as stopped:
            runner.ask(Call((0,)))
    assert stopped.value.why == "time"


def test_limits_that_are_not_reached_stop_nothing() -> None:
    limits = Limits(memory=2**28, printed=5_000)
    with Child(lambda: (print("x" * 4_000), time.sleep(0.1), np.ones(2**20).sum())[-1], limits) as runner:
        assert [runner.ask(Call()) for _ in range(3)] == [2**20] * 3  # 12 000 bytes, but 4 001 in each call
        assert runner.printed == Printed(12_003, 3, runner.printed.first)


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_libraries_that_come_late_have_room(library: str) -> None:
    """What the job imports is not counted, and what the target imports fits."""

    def target(x: Any) -> float:
        import jax.numpy as jnp

        xp = jnp if library == "jax" else torch
        return float((xp.asarray(x) @ xp.asarray(x)).sum())

    assert asked(target, np.eye(5), limits=Limits(memory=2**29)) == 5


# -- answers -----------------------------------------------------------------------------------------------------


def shared(base: float) -> Callable[[float], float]:
    return lambda exponent: base**exponent


class Scaled:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, x: Any) -> Any:
        return self.factor * x

    def method(self, x: Any) -> Any:
        return self.factor * x + len(WORD)


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).detach()


def announced(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


@announced
def squared(x: Any) -> Any:
    return x * x


LIVE = {
    "closure": (shared(3.0), 2.0),
    "lambda": (lambda x: x + len(WORD), 2.0),
    "partial": (functools.partial(pow, 2.0), 5.0),
    "partial of ours": (functools.partial(squared), 5.0),
    "object": (Scaled(3.0), 2.0),
    "method": (Scaled(3.0).method, 2.0),
    "builtin": (abs, -2.0),
    "ufunc": (np.square, np.arange(3.0)),
    "decorated": (squared, 5.0),
}


@pytest.mark.parametrize("name", LIVE)
def test_live_objects_answer_as_they_do_here(name: str) -> None:
    target, x = LIVE[name]
    assert np.array_equal(asked(target, x), target(x))
    assert np.array_equal(asked(target, x, limits=None), target(x))


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # of PyTorch, when its compiler is imported
def test_layers_travel_with_their_weights() -> None:
    layer, x = Layer(), torch.arange(3.0)
    with Child(torch.compile(lambda x: layer(x), backend="eager")) as runner:  # the plain function is sent
        assert torch.equal(runner.ask(Call((x,))), layer(x))
        assert runner.printed == Printed()


def test_jax_counts_in_the_same_bits() -> None:
    target = jax.jit(lambda x: x * 2)
    answer = asked(target, np.arange(3.0), limits=Limits())
    assert answer.dtype == target(np.arange(3.0)).dtype


def test_a_class_is_a_target() -> None:
    assert asked(functools.partial(Made.answer, Made)) == ("Made", WORD)


class Made:
    def answer(self: Any) -> tuple[str, str]:
        return self.__name__, WORD


class Own(Exception):  # noqa: N818 - a name
    """Of this module alone."""


def fails(kind: str) -> list[str]:
    if kind == "own":
        raise Own("of its own")
    if kind == "interrupt":
        raise KeyboardInterrupt
    if kind == "modules":  # none of ours: not even to name an exception is the module imported again
        return [name for name in sys.modules if "test_process" in name]
    raise ZeroDivisionError("by nothing")


def test_exceptions_are_raised_here_and_the_child_lives_on() -> None:
    with Child(fails) as runner:
        with pytest.raises(ZeroDivisionError, match="by nothing"):
            runner.ask(Call(("any",)))
        with pytest.raises(RuntimeError, match=r"(?s)line \d+, in fails.*Own: of its own"):
            runner.ask(Call(("own",)))
        with pytest.raises(RuntimeError, match="KeyboardInterrupt"):
            runner.ask(Call(("interrupt",)))
        assert runner.ask(Call(("modules",))) == []


def test_an_answer_without_a_pickle_is_an_error() -> None:
    with pytest.raises((TypeError, pickle.PicklingError, AttributeError), match="pickle"):
        asked(lambda: lambda: 0)


# -- what is around it -------------------------------------------------------------------------------------------


def talks() -> str:
    print("out")
    print("err", file=sys.stderr)
    sys.stdout.flush()
    os.write(1, b"below out\n")
    os.write(2, b"below err\n")
    subprocess.run([sys.executable, "-S", "-c", "print('grandchild')"], check=True)
    return input()


def test_nothing_printed_reaches_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with Child(talks) as runner:
        with pytest.raises(EOFError):
            runner.ask(Call())
        told = runner.printed
    assert sorted(told.first.split()) == sorted("out err below out below err grandchild".split())
    assert (told.bytes, told.lines) == (len(told.first), 5)
    assert capfd.readouterr() == ("", "")


def test_here_keeps_the_prints_of_python_too(capsys: pytest.CaptureFixture[str]) -> None:
    with Here(lambda: (print("out"), print("err", end="", file=sys.stderr))) as runner:
        runner.ask(Call())
    assert runner.printed == Printed(7, 2, "out\nerr")
    assert capsys.readouterr() == ("", "")


def test_here_tells_of_the_same_stops() -> None:
    with pytest.raises(Stopped, match=r"by sys\.exit\('enough'\)"):
        asked(exits, limits=None)
    with pytest.raises(EOFError):
        asked(input, limits=None)
    with pytest.raises(Stopped, match="memory ran out") as stopped:
        asked(lambda: np.ones(2**55), limits=None)
    assert stopped.value.why == "memory"


@pytest.mark.parametrize("cut", [1, 2, 5, 16])
def test_a_tally_does_not_depend_on_the_parts(cut: int) -> None:
    text = "one\ntwo ∑\n\nthree".encode()
    tally = Tally()
    for start in range(0, len(text), cut):
        tally.take(text[start : start + cut])
    assert tally.read() == Printed(len(text), 4, text.decode())


def test_the_child_has_one_thread_and_no_gpu() -> None:
    def around() -> tuple[Any, ...]:
        return torch.get_num_threads(), torch.cuda.is_available(), os.environ["JAX_PLATFORMS"], sys.path, sys.argv

    threads, gpu, platform, path, argv = asked(around, limits=Limits())
    assert (threads, gpu, platform, argv) == (1, False, "cpu", ["-c"])
    assert path == [str(folder) for folder in sys.path]


def test_the_child_loads_little() -> None:
    loaded = asked(lambda: set(sys.modules))
    assert not {"numpy", "sympy", "torch", "jax", "regard.attention", "pytest"} & loaded


# -- what cannot be sent -----------------------------------------------------------------------------------------


def test_what_has_no_pickle_is_named() -> None:
    numbers: Iterator[int] = iter([1])
    stream = (number for number in numbers)
    with pytest.raises(TargetError, match=r"got function .*: cannot pickle 'generator' object; .* limits=None"):
        Child(lambda: next(stream))
    assert asked(lambda: next(stream), limits=None) == 1


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(MissingExtra, match=r'needs cloudpickle.*"regard\[check\]"; or .* limits=None'):
        Child(well)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"seconds": 0}, CallError, "seconds: a number of seconds above 0; got 0; leave it out for 60.0, or pass"),
        ({"call_seconds": math.nan}, CallError, "call_seconds: a number of seconds above 0; got nan"),
        ({"start_seconds": "5"}, KindError, "start_seconds: a number of seconds above 0; got '5'"),
        ({"memory": 1.5}, KindError, "memory: an integer of bytes above 0; got 1.5"),
        ({"printed": True}, KindError, "printed: an integer of bytes above 0; got True"),
    ],
)
def test_limits_are_checked(given: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as refused:
        Limits(**given)
    assert text in str(refused.value)


def test_no_end_of_time_is_a_limit() -> None:
    endless = Limits(seconds=math.inf, call_seconds=math.inf, start_seconds=math.inf)
    assert asked(well, limits=endless) == WORD


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError(), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 7 bytes."), True),
        (ValueError("std::bad_alloc is a name"), False),
        (RuntimeError("shapes"), False),
    ],
)
def test_words_for_memory(error: Exception, told: bool) -> None:
    wrapped = KeyError("outer")
    wrapped.__cause__ = error
    assert (out_of_memory(error), out_of_memory(wrapped)) == (told, told)


@pytest.mark.parametrize(
    ("code", "why", "text"),
    [
        (-signal.SIGABRT, "crash", "SIGABRT: compiled code gave up"),
        (-200, "crash", "signal 200"),
        (0xC0000005, "crash", "code 0xc0000005"),
        (0, "exit", "exit code 0"),
    ],
)
def test_words_for_an_end(code: int, why: str, text: str) -> None:
    stopped = died(code, ABOUT)
    assert stopped.why == why
    assert text in str(stopped)


# -- no one is left behind ---------------------------------------------------------------------------------------


def parent(code: str, folder: Path) -> subprocess.Popen[str]:
    """A script, without a guard, that uses a child."""
    head = """
        import os, sys, time
        import numpy as np
        from regard.diagnosis.sandbox.process import Call, Child
        from regard.diagnosis.sandbox.limits import Limits
        print("main runs", flush=True)

        def target(what):
            if what == "pid":
                return os.getpid()
            while True:
                pass
    """
    script = folder / "script.py"
    script.write_text(dedent(head) + dedent(code), encoding="utf-8")
    return subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


HANGS = """
    runner = Child(target)
    print(runner.ask(Call(("pid",))), flush=True)
    runner.ask(Call(("hang",)))
"""


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_script_without_a_guard_runs_once(tmp_path: Path) -> None:
    code = "print(Child(target).ask(Call(('pid',))) != os.getpid())"
    out, err = parent(code, tmp_path).communicate(timeout=PATIENCE)
    assert (out.split("\n"), err) == (["main runs", "True", ""], "")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_child_ends_with_its_parent(how: signal.Signals, tmp_path: Path) -> None:
    with parent(HANGS, tmp_path) as process:
        assert said(process) == "main runs"
        pid = int(said(process))
        assert alive(pid)
        time.sleep(0.2)
        process.send_signal(how)
        process.communicate(timeout=PATIENCE)
    assert gone(pid)


def test_a_dropped_runner_leaves_no_child() -> None:
    runner: Runner = Child(os.getpid)
    pid = runner.ask(Call())
    assert alive(pid)
    del runner
    assert gone(pid)


def begets() -> int:
    return subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(1000)"]).pid


def test_the_children_of_the_child_end_too() -> None:
    pid = asked(begets, limits=Limits())
    assert gone(pid)


def test_the_system_ends_what_computes_for_too_long() -> None:
    code = "from regard.diagnosis.sandbox.memory import limit_processor as limit\nlimit(0.5)\nwhile True: pass"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=PATIENCE).returncode == -signal.SIGXCPU


def test_where_the_system_holds_no_ceiling_a_thread_does() -> None:
    code = """
        import sys, time
        sys.platform = "elsewhere"
        from regard.diagnosis.sandbox.memory import Ceiling
        ceiling = Ceiling(2**26)
        ceiling.settle()
        kept = []
        while True:
            kept.append(bytes([1]) * 2**20)
            time.sleep(0.001)
    """
    done = subprocess.run([sys.executable, "-c", dedent(code)], check=False, timeout=PATIENCE)
    assert done.returncode == memory.OVER_MEMORY


def test_a_file_that_loads_forever_is_stopped_and_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "slow.py"
    file.write_text("def f(): pass\nwhile True: pass", encoding="utf-8")
    with Child(Place(f"{file}:f"), Limits(start_seconds=0.5)) as runner:
        for _ in range(2):
            with pytest.raises(Stopped, match=r"loading slow.py:f took more than 0\.5 s; keep training"):
                runner.ask(Call())
            monkeypatch.setattr(process, "Connection", None)  # another child cannot be started
