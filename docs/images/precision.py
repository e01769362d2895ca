#!/usr/bin/env python3
"""Processor time against the error at the end, chain of 1024 five-mass blocks to t = 2 s, as SVG.

docs/images/make.sh calls it from the root of the repository; it reads docs/images/precision.csv.
"""
import csv
import math
from pathlib import Path

WIDTH, HEIGHT = 760, 430
LEFT, RIGHT, TOP, BOTTOM = 84, 16, 112, 52
CURVES = [  # column, colour, name
    ("peer_as_installed_us", "#888888", "best of SUNDIALS, as Debian has it: not optimised"),
    ("peer_us", "#c55a11", "best of SUNDIALS, vector loops optimised"),
    ("chosen_us", "#548235", "portwave, waves, steps that choose their size"),
    ("waves_us", "#1f4e79", "portwave, waves, equal steps"),
    ("explicit_us", "#7030a0", "portwave, Taylor series, equal steps"),
]


def main() -> None:
    with (Path(__file__).parent / "precision.csv").open() as file:
        rows = list(csv.DictReader(file))
    exponents = [int(row["exponent"]) for row in rows]
    times_ms = [float(row[c]) / 1e3 for row in rows for c, _, _ in CURVES if row[c]]
    first, last = min(exponents) - 0.4, max(exponents) + 0.4
    low, high = math.floor(math.log10(min(times_ms))), math.ceil(math.log10(max(times_ms)))

    def x(exponent: float) -> float:
        return LEFT + (exponent - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def y(time_ms: float) -> float:
        share = (math.log10(time_ms) - low) / (high - low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="Helvetica, Arial, sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]

    def line(x1: float, y1: float, x2: float, y2: float, colour: str) -> None:
        out.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>')

    def text(at_x: float, at_y: float, what: str, rest: str = "") -> None:
        out.append(f'<text x="{at_x:.1f}" y="{at_y:.1f}" {rest}>{what}</text>')

    for power in range(low, high + 1):
        at = y(10.0**power)
        line(LEFT, at, WIDTH - RIGHT, at, "#dddddd")
        text(LEFT - 8, at + 4, f"{10.0**power:g}", 'text-anchor="end"')
    for exponent in exponents:
        at = x(exponent)
        line(at, TOP, at, HEIGHT - BOTTOM, "#dddddd")
        text(at, HEIGHT - BOTTOM + 18,
             f'10<tspan dy="-5" font-size="10">-{exponent}</tspan>', 'text-anchor="middle"')
    line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "black")
    line(LEFT, TOP, LEFT, HEIGHT - BOTTOM, "black")
    text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "error of the state at the end, relative",
         'text-anchor="middle"')
    middle = (TOP + HEIGHT - BOTTOM) / 2
    text(20, middle, "processor time [ms]",
         f'text-anchor="middle" transform="rotate(-90 20 {middle:.1f})"')
    for place, (column, colour, name) in enumerate(CURVES):
        points = [(x(int(r["exponent"])), y(float(r[column]) / 1e3)) for r in rows if r[column]]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        out += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in points]
        at = 18 + 19 * place
        out.append(f'<line x1="{LEFT}" y1="{at}" x2="{LEFT + 28}" y2="{at}" stroke="{colour}" '
                   'stroke-width="1.5"/>')
        out.append(f'<circle cx="{LEFT + 14}" cy="{at}" r="3" fill="{colour}"/>')
        text(LEFT + 36, at + 4, name)
    print("\n".join(out + ["</svg>"]))


main()
