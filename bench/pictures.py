"""The figures of a comparison as pictures. The same figures give the same bytes.

Text and lines are of a grey that is readable on white and on black; the background is transparent.
"""

import math
import sys

try:
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
except ImportError:
    matplotlib = None

GREY = "#7d7d7d"
COLOURS = {"tubed": "#2f81d6", "beanstalkd": "#d68a2f", "do-nothing": "#9a9a9a"}
STYLE = {
    "svg.hashsalt": "tubed", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10,
    "text.color": GREY, "axes.labelcolor": GREY, "axes.edgecolor": GREY, "axes.titlecolor": GREY,
    "xtick.color": GREY, "ytick.color": GREY, "axes.spines.top": False, "axes.spines.right": False,
    "legend.frameon": False, "savefig.transparent": True,
}


def need_matplotlib():
    if matplotlib is None:
        sys.exit(f"no matplotlib for {sys.executable}: apt-get install python3-matplotlib (it is "
                 "for /usr/bin/python3), or leave out --plot")


def _columns(results, rows, keys):
    """[(label, {server: [figures of these keys]})] of each table of these rows that has them all;
    times in microseconds."""
    found = []
    for name in rows:
        for table in results["rows"].get(name, {"tables": []})["tables"]:
            if not set(keys) <= set(table["keys"]):
                continue
            at = [table["keys"].index(key) for key in keys]
            scale = [1000 if table["columns"][i].endswith(" ms") else 1 for i in at]
            label = table["title"].replace(": ", ":\n", 1).replace(", from", ",\nfrom")
            found.append((f"{name}\n{label}", {
                server: [figures[i] * by for i, by in zip(at, scale)]
                for server, figures in table["rows"].items() if server in COLOURS}))
    return found


def _bars(axes, scenarios, title, written):
    """Horizontal bars, one group for each scenario, the first on top, each with its figure."""
    names = [name for name in COLOURS if any(name in each for _, each in scenarios)]
    height = 0.8 / len(names)
    for number, name in enumerate(names):
        points = [(place + (number - (len(names) - 1) / 2) * height, each[name][0])
                  for place, (_, each) in enumerate(scenarios) if name in each]
        bars = axes.barh([place for place, _ in points], [value for _, value in points], height,
                         color=COLOURS[name], label=name)
        axes.bar_label(bars, [written(value) for _, value in points], padding=3, color=GREY)
    axes.set_yticks(range(len(scenarios)), [label for label, _ in scenarios])
    axes.invert_yaxis()
    axes.set_title(title, loc="left")


def _ranges(axes, scenarios, title):
    """A line from the median to the 99th percentile."""
    names = [name for name in ("tubed", "beanstalkd") if any(name in each for _, each in scenarios)]
    for number, name in enumerate(names):
        for place, (_, each) in enumerate(scenarios):
            if name not in each:
                continue
            at = place + (number - (len(names) - 1) / 2) * 0.3
            p50, p99 = each[name]
            axes.plot([p50, p99], [at, at], color=COLOURS[name], linewidth=3,
                      solid_capstyle="round", label=name if place == 0 else None)
            axes.plot([p50], [at], "o", color=COLOURS[name])
            axes.annotate(f"{p50:,.0f} to {p99:,.0f}", (p99, at), xytext=(6, -3),
                          textcoords="offset points", color=GREY, fontsize=9)
    axes.set_yticks(range(len(scenarios)), [label for label, _ in scenarios])
    axes.invert_yaxis()
    axes.set_title(title, loc="left")


def _save(figure, path):
    figure.savefig(path, format="svg", bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)
    # matplotlib ends some lines with a space.
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("".join(line.rstrip() + "\n" for line in lines), encoding="utf-8")


def _significant(value):
    return f"{value:.{max(0, 1 - math.floor(math.log10(value)))}f}" if 0 < value < 10 else (
        f"{value:,.0f}")


def _logarithmic(axes):
    """Plain numbers, and room for the text after the last point."""
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.xaxis.set_minor_formatter(lambda *_: "")
    left, right = axes.get_xlim()
    axes.set_xlim(left / 1.3, right * 2)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))


def _draw_cpu(scenarios, path):
    figure, axes = pyplot.subplots(figsize=(8, 0.9 * len(scenarios) + 0.8))
    _bars(axes, scenarios, "server CPU, µs a command (logarithmic; less is better)", _significant)
    _logarithmic(axes)
    _save(figure, path)


def _draw_latency(scenarios, path):
    figure, axes = pyplot.subplots(figsize=(8, 0.8 * len(scenarios) + 0.8))
    _ranges(axes, scenarios, "µs from the median to the 99th percentile (logarithmic)")
    _logarithmic(axes)
    _save(figure, path)


def _draw_memory(panels, path):
    figure, several = pyplot.subplots(1, len(panels), figsize=(4 * len(panels), 1.6), squeeze=False)
    for axes, (title, scenarios) in zip(several[0], panels):
        _bars(axes, [("", each) for _, each in scenarios], title, _significant)
        axes.margins(x=0.2)
    several[0][-1].legend(loc="upper left", bbox_to_anchor=(1, 1))
    _save(figure, path)


def draw(results, folder):
    """Writes a picture for each available kind of figures; returns the paths."""
    need_matplotlib()
    folder.mkdir(parents=True, exist_ok=True)
    cpu = _columns(results, ("put-1", "cycle-1", "put-16", "cycle-30", "large"), ("cpu",))
    latency = _columns(results, ("single", "waiters", "lateness"), ("p50", "p99"))
    memory = [(title, found) for title, found in (
        ("bytes a ready job", _columns(results, ("memory",), ("a_job",))),
        ("KiB an idle connection", _columns(results, ("connections",), ("kib",)))) if found]
    written = []
    with pyplot.rc_context(STYLE):
        for name, figures, picture in (("cpu", cpu, _draw_cpu), ("latency", latency, _draw_latency),
                                       ("memory", memory, _draw_memory)):
            if figures:
                path = folder / f"{name}.svg"
                picture(figures, path)
                written.append(path)
    return written
