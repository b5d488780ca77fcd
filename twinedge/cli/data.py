"""``twinedge data``: the paper's data sets."""

from typing import Annotated

import typer

from twinedge.cli.options import Json, choice, examples
from twinedge.cli.output import print_json, print_table, print_text

app = typer.Typer()


@app.callback(
    invoke_without_command=True, epilog=examples("data list", "data show cs", "data show cs --json")
)
def data(context: typer.Context) -> None:
    """List and show the paper's data sets."""
    if context.invoked_subcommand is None:
        print_text(context.get_help())


@app.command("list", epilog=examples("data list", "data list --json"))
def list_sets(as_json: Json = False) -> None:
    """List the data sets by their keys.

    The file of a set is looked for in the folder that the environment variable TWINEDGE_DATA
    names, then among the downloads.
    """
    from twinedge.data.catalogue import CATALOGUE
    from twinedge.data.fetch import find_file

    sets = [
        {
            "dataset": key,
            "title": entry.title,
            "rows": entry.rows,
            "features": entry.features,
            "target": entry.target_name,
            "file": str(find_file(entry) or "") or None,
        }
        for key, entry in CATALOGUE.items()
    ]
    if as_json:
        print_json({"datasets": sets})
        return
    print_table(
        ("set", "title", "rows", "features", "target", "file"),
        [[str(value or "-") for value in one.values()] for one in sets],
    )


@app.command("show", epilog=examples("data show cs", "data show wsb --variant paper --json"))
def show_set(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Key of a data set, as in 'list'.")],
    variant: Annotated[
        str,
        choice("The data published, or what the text of the paper says.", "published", "paper"),
    ] = "published",
    as_json: Json = False,
) -> None:
    """Show where a data set comes from and what its columns hold.

    A set that is not on this machine is downloaded and kept.
    """
    from twinedge.data import load
    from twinedge.data.catalogue import entry_of

    table, entry = load(name, variant), entry_of(name)
    names = (*table.feature_names, table.target_name)
    columns = [
        {
            "column": column,
            "min": float(values.min()),
            "mean": float(values.mean()),
            "max": float(values.max()),
        }
        for column, values in zip(names, (*table.X.T, table.y), strict=True)
    ]
    if as_json:
        print_json(
            {
                "dataset": table.name,
                "title": table.title,
                "rows": table.rows,
                "features": table.features,
                "target": table.target_name,
                "source": table.source,
                "origin": entry.source,
                "licence": entry.licence,
                "note": entry.note,
                "columns": columns,
            }
        )
        return
    print_text(
        f"{table.title}: {table.rows} rows, {table.features} features; target {table.target_name}",
        f"Origin: {entry.source}. Licence: {entry.licence}.",
        f"Read from: {table.source}.",
        *filter(None, [entry.note]),
        "",
    )
    print_table(
        ("column", "min", "mean", "max"),
        [[str(c["column"]), *(f"{c[k]:.6g}" for k in ("min", "mean", "max"))] for c in columns],
    )
