"""What the measures of this folder share. A measure is a program that tools/measure starts: a file of
unittest cases whose methods take figures and call `figure` for each. A case may fail only if it could
not measure, never because of a figure."""


def figure(what, value, unit, baseline=None, of=None):
    """Prints one figure, and `baseline`, the same figure of `of` (such as "an idle server" or
    "beanstalkd") in the same run."""
    line = f"{what}: {value:.4g} {unit}"
    if baseline is not None:
        line += f" ({of}: {baseline:.4g} {unit})"
    print(line, flush=True)
