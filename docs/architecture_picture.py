"""The diagram of ARCHITECTURE.md as an SVG: layers from top to bottom, an arrow where one package imports another."""

import re

WIDTH, ROW, BOX, HIGH = 920, 72, 112, 34


def drawn(mermaid: str) -> str:
    """Return the picture of a flowchart whose subgraphs are layers."""
    layers = [
        re.findall(r"^    (\w+)$", body, re.MULTILINE)
        for body in re.findall(r"subgraph.*?\n(.*?)  end", mermaid, re.DOTALL)
    ]
    place = {}
    for k, names in enumerate(layers):
        for j, name in enumerate(names):
            place[name] = (WIDTH * (j + 1) / (len(names) + 1), ROW * k + HIGH)
    shapes = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {ROW * len(layers)}" font-family="sans-serif">',
        '<defs><marker id="tip" markerWidth="7" markerHeight="7" refX="6" refY="3" orient="auto">'
        '<path d="M0,0 L6,3 L0,6 z" fill="#8a94a6"/></marker></defs>',
    ]
    for source, target in re.findall(r"^  (\w+) --> (\w+)$", mermaid, re.MULTILINE):
        (x, y), (u, v) = place[source], place[target]
        if v <= y:
            continue  # neighbours of one layer
        bend = (y + v) / 2
        path = f"M{x:.0f},{y + HIGH / 2:.0f} C{x:.0f},{bend:.0f} {u:.0f},{bend:.0f} {u:.0f},{v - HIGH / 2 - 1:.0f}"
        shapes.append(f'<path d="{path}" fill="none" stroke="#8a94a6" stroke-opacity="0.55" marker-end="url(#tip)"/>')
    for name, (x, y) in place.items():
        shapes.append(
            f'<rect x="{x - BOX / 2:.0f}" y="{y - HIGH / 2:.0f}" width="{BOX}" height="{HIGH}" rx="6" fill="#e8f1f5" '
            f'stroke="#0a7d91"/><text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle" font-size="15">{name}</text>'
        )
    return "\n".join([*shapes, "</svg>\n"])
