"""`riverlog version`: what is installed, for bug reports."""

import platform
from typing import Annotated

import typer

from riverlog import __version__
from riverlog.cli.options import OutputFormat, OutputOption
from riverlog.cli.printing.output import show_json

app = typer.Typer(add_completion=False)


@app.command()
def version(
    output: OutputOption = OutputFormat.TABLE,
    short: Annotated[bool, typer.Option("--short", help="Only Riverlog's own version.")] = False,
) -> None:
    """Show the versions of Riverlog, Python and librdkafka."""
    if short:
        typer.echo(__version__)
        return
    import confluent_kafka

    versions = {
        "riverlog": __version__,
        "python": platform.python_version(),
        "confluent-kafka": confluent_kafka.__version__,
        "librdkafka": confluent_kafka.libversion()[0],
    }
    if output is OutputFormat.JSON:
        show_json(versions)
        return
    for name, number in versions.items():
        typer.echo(f"{name} {number}")
