"""The colours of the lens, for pictures that are drawn beforehand: one scale, even in lightness, from paper to ink.

(L, C, h) -> OKLab (L, C cos h, C sin h) -> linear sRGB -> sRGB, as in src/regard/viewer/page/colour.js
"""

from __future__ import annotations

import math

STEPS = 24  # w0 is paper, w24 the deepest
THEMES = ("light", "dark")
INK = {"light": "#5c534b", "dark": "#b8aea3"}  # print beside a picture
RULE = {"light": "#d9d3ca", "dark": "#4a433c"}  # frames and axes
MARK = {"light": "#1f4e79", "dark": "#9cc9f0"}  # what stands on the scale and must not be read as part of it
PAPER = {"light": (0.986, 0.004), "dark": (0.185, 0.008)}
DEEP = {"light": (0.3, 0.115), "dark": (0.955, 0.055)}
HUES = {"light": (66, 10, 0.8), "dark": (14, 80, 1.25)}


def step(weight: float) -> int:
    """How deep the colour of a weight in 0…1 is: its root, as in the lens, so that small weights are seen."""
    return round(STEPS * math.sqrt(min(1.0, max(0.0, weight))))


def ramp(theme: str) -> list[str]:
    """The colours w0 … w24."""
    return [_colour(theme, at / STEPS) for at in range(STEPS + 1)]


def style(levels: set[int]) -> str:
    """The rules of a picture: light, and dark where the page that shows it is dark."""
    light, dark = (_rules(theme, levels) for theme in THEMES)
    print_ = "text{font:12px ui-sans-serif,system-ui,sans-serif}.head{font-weight:600}"
    return f"<style>{print_}{light}@media(prefers-color-scheme:dark){{{dark}}}</style>"


def _rules(theme: str, levels: set[int]) -> str:
    colours = ramp(theme)
    cells = "".join(f".w{level}{{fill:{colours[level]}}}" for level in sorted(levels))
    return (
        f"text{{fill:{INK[theme]}}}.rule{{fill:none;stroke:{RULE[theme]}}}.line{{fill:none;stroke:{INK[theme]};opacity:.5}}.paper{{fill:{colours[0]}}}"
        f".halo{{fill:none;stroke:{colours[0]};stroke-width:5}}"
        f".mark{{fill:none;stroke:{MARK[theme]};stroke-width:2}}.point{{fill:{MARK[theme]}}}{cells}"
    )


def _colour(theme: str, t: float) -> str:
    (light0, chroma0), (light1, chroma1) = PAPER[theme], DEEP[theme]
    hue0, hue1, power = HUES[theme]
    swell = _between(chroma0, chroma1, t) + 0.15 * math.sin(math.pi * t**0.92) ** 1.35
    return _from_polar(_between(light0, light1, t), swell, _between(hue0, hue1, t**power))


def _between(start: float, end: float, t: float) -> float:
    return start + (end - start) * t


def _from_polar(light: float, chroma: float, hue: float) -> str:
    """As much chroma as a screen has at this lightness and hue: lightness is never given up for it."""
    angle = math.radians(hue)
    while True:
        rgb = _linear(light, chroma * math.cos(angle), chroma * math.sin(angle))
        if chroma <= 0 or all(-1e-4 <= x <= 1.0001 for x in rgb):
            return "#" + "".join(f"{_encoded(x):02x}" for x in rgb)
        chroma = max(0.0, chroma - 0.001)


def _linear(light: float, a: float, b: float) -> tuple[float, float, float]:
    long = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (light - 0.0894841775 * a - 1.291485548 * b) ** 3
    return (
        4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * middle + 1.707614701 * short,
    )


def _encoded(x: float) -> int:
    cut = min(1.0, max(0.0, x))
    return round(255 * (12.92 * cut if cut <= 0.0031308 else 1.055 * cut ** (1 / 2.4) - 0.055))
