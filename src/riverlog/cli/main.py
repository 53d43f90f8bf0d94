"""The entry point of the `riverlog` executable.

`serve` is to be ready within half a second, of which the option parser and what it imports would take two
fifths. So a plain `riverlog serve …` is read by the few lines of `quick_serve`; whatever they do not
understand, help and mistakes included, goes to the full parser in `commands`.
"""

import sys


def main() -> None:
    if sys.argv[1:2] == ["serve"]:
        from riverlog.cli import quick_serve

        options = quick_serve.parse(sys.argv[2:])
        if options is not None:
            sys.exit(quick_serve.run(options))
    from riverlog.cli.application import app

    app(prog_name="riverlog")


if __name__ == "__main__":
    main()
