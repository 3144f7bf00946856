"""The figures of a comparison as text and as Markdown."""

import servers

TO = "–"


def number(value):
    """Three significant digits, with thousands separated."""
    if value is None:
        return ""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"


def ratio(value):
    return f"{value:.3f}" if value < 0.2 else f"{value:.2f}"


def measured(claim):
    """Ratios without a unit; other numbers with their unit."""
    if claim["unit"]:
        return f"{number(claim['measured'])} {claim['unit']}"
    return ratio(claim["measured"])


def figure(claim, which):
    value = claim.get(which)
    return "" if value is None else f"{number(value)} {claim['figures_in']}"


def spread(claim):
    if "least" not in claim:
        return ""
    written = number if claim["unit"] else ratio
    return f"{written(claim['least'])}{TO}{written(claim['most'])}"


def bound(claim):
    if claim["bound"] is None:
        return ""
    of = claim.get("of", "")
    unit = claim["unit"] or f"of {of}"
    return f"at most {claim['bound']:g} {unit}"


def reached(claim, missed="NO"):
    return {None: "", True: "yes", False: missed}[claim["reached"]]


def head(results):
    pinned = "server and load on a processor each" if results["pinned"] else "nothing pinned"
    rounds = f"{results['rounds']} round{'s' if results['rounds'] > 1 else ''}"
    return (f"{results['machine']}; {rounds} of {results['seconds']:g} s each, {pinned}; "
            f"{', '.join(results['versions'])}")


def claims_of(results):
    for name, row in results["rows"].items():
        for claim in row["claims"]:
            yield name, claim


def missed(results):
    return [(name, claim) for name, claim in claims_of(results) if claim["reached"] is False]


def print_row(name, row):
    for table in row["tables"]:
        rows = [[server, *map(number, figures)] for server, figures in table["rows"].items()]
        servers.print_table(f"{name}: {table['title']}", ["", *table["columns"]], rows)
    for claim in row["claims"]:
        judged = f"; target {bound(claim)}: {reached(claim)}" if claim["bound"] is not None else ""
        of = f" of {claim['of']}" if not claim["unit"] and "of" in claim else ""
        range_text = f" ({spread(claim)})" if "least" in claim else ""
        print(f"\n  {claim['what']}: {measured(claim)}{of}{range_text}{judged}", end="")
    for note in row["notes"]:
        print(f"\n  {note}", end="")
    print()


def print_targets(results):
    rows = [[name, claim["what"], measured(claim), spread(claim), bound(claim), reached(claim)]
            for name, claim in claims_of(results) if claim["bound"] is not None]
    if rows:
        servers.print_table("Targets", ["row", "quantity", "measured", "rounds", "target", "reached"],
                            rows)


def print_markdown(results):
    """The tables that docs/performance.md shows."""
    print(f"{head(results)}.\n")
    print("| row | quantity | figure | compared with | measured | rounds | target | reached |")
    print("|---|---|---:|---:|---:|---:|---|---|")
    for name, claim in claims_of(results):
        cells = [f"`{name}`", claim["what"], figure(claim, "value"), figure(claim, "beside"),
                 measured(claim), spread(claim),
                 bound(claim) or (f"of {claim['of']}; none" if "of" in claim else "none"),
                 reached(claim, missed="**no**")]
        print(f"| {' | '.join(cells)} |")
    for name, row in results["rows"].items():
        for table in row["tables"]:
            print(f"\n`{name}`, {table['title']}:\n")
            print(f"| | {' | '.join(table['columns'])} |")
            print(f"|---|{'---:|' * len(table['columns'])}")
            for server, figures in table["rows"].items():
                print(f"| {server} | {' | '.join(map(number, figures))} |")
        for note in row["notes"]:
            print(f"\n{note}")
