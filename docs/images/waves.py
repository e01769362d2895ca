#!/usr/bin/env python3
"""Draws docs/images/waves.svg: parts that exchange waves through junctions. Called by docs/images/make.sh.

Colours follow the reader's setting: dark lines on a light page, light lines on a dark one.
"""

WIDTH, HEIGHT = 760, 250
PART_WIDTH, PART_HEIGHT = 150, 96
TOP = 26
RADIUS = 24
PARTS = ["motor", "shaft", "load"]
CAPTIONS = [
    "Each macro-step: the parts answer waves with waves, the junctions pass them on,",
    "until all agree or the budget is spent. Then every part advances once.",
]
STYLE = """
  text { font-family: Helvetica, Arial, sans-serif; fill: #24292f; text-anchor: middle }
  .name { font-size: 17px; font-weight: bold }
  .law { font-size: 15px; font-style: italic }
  .small { font-size: 13px }
  .box { fill: #ddebf7; stroke: #1f4e79; stroke-width: 1.5 }
  .junction { fill: #fbe5d6; stroke: #c55a11; stroke-width: 1.5 }
  .wave { stroke: #57606a; stroke-width: 1.8; fill: none }
  .head { fill: #57606a }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .box { fill: #13314d; stroke: #79b8ff }
    .junction { fill: #4a2a12; stroke: #f0a868 }
    .wave { stroke: #b1bac4 }
    .head { fill: #b1bac4 }
  }
"""


def text(x, y, kind, words):
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{words}</text>'


def arrow(begin, end, y):
    """A wave from `begin` to `end`."""
    back = 7 if end > begin else -7
    return (f'<path class="wave" d="M{begin:g},{y:g} H{end - back:g}"/>'
            f'<path class="head" d="M{end:g},{y:g} l{-1.4 * back:g},-5 v10 z"/>')


def waves_between(part, junction, middle):
    """Outgoing wave b above, incident wave a below, between an edge of a part and one of a junction."""
    towards = 4 if junction > part else -4
    part, junction = part + towards, junction - towards
    label = (part + junction) / 2
    return [arrow(part, junction, middle - 11), text(label, middle - 18, "law", "b"),
            arrow(junction, part, middle + 11), text(label, middle + 28, "law", "a")]


def drawing():
    gap = (WIDTH - 20 - len(PARTS) * PART_WIDTH) / (len(PARTS) - 1)
    middle = TOP + PART_HEIGHT / 2
    shapes = []
    for i, name in enumerate(PARTS):
        left = 10 + i * (PART_WIDTH + gap)
        right, centre = left + PART_WIDTH, left + PART_WIDTH / 2
        shapes += [f'<rect class="box" x="{left:g}" y="{TOP}" width="{PART_WIDTH}" height="{PART_HEIGHT}" rx="8"/>',
                   text(centre, TOP + 28, "name", name), text(centre, TOP + 55, "law", "b = S(a)"),
                   text(centre, TOP + 80, "small", "stores energy H")]
        if i + 1 == len(PARTS):
            continue
        place = right + gap / 2
        shapes += [f'<circle class="junction" cx="{place:g}" cy="{middle:g}" r="{RADIUS}"/>',
                   text(place, middle + 6, "law", "P"), text(place, middle + 48, "small", "a = P b"),
                   *waves_between(right, place - RADIUS, middle),
                   *waves_between(right + gap, place + RADIUS, middle)]
    shapes += [text(WIDTH / 2, 160, "small", "½a² flows into a part, ½b² out of it; a junction neither stores nor creates energy.")]
    shapes += [text(WIDTH / 2, 194 + 22 * i, "small", line) for i, line in enumerate(CAPTIONS)]
    return shapes


def main():
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">')
    print("<title>Parts exchange waves through junctions</title>")
    print(f"<style>{STYLE}</style>")
    print("\n".join(drawing()))
    print("</svg>")


if __name__ == "__main__":
    main()
