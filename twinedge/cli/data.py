"""``twinedge data``: the paper's data sets."""

from typing import Annotated

import typer

from twinedge.cli.options import Json
from twinedge.cli.output import print_json, print_table

app = typer.Typer(help="List and show the paper's data sets.", no_args_is_help=True)


@app.command("list")
def list_sets(as_json: Json = False) -> None:
    """List the data sets by their keys.

    Example: twinedge data list
    """
    from twinedge.data.catalogue import CATALOGUE
    from twinedge.data.folders import find_file

    if as_json:
        print_json(
            {
                "datasets": [
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
            }
        )
        return
    lines = [
        (key, e.title, str(e.rows), str(e.features), e.target_name, str(find_file(e) or "-"))
        for key, e in CATALOGUE.items()
    ]
    print_table(lines, ("set", "title", "rows", "features", "target", "file at hand"))


@app.command("show")
def show_set(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Key of a data set, as in 'list'.")],
    variant: Annotated[
        str, typer.Option(help="published, or paper for what the text of the paper says.")
    ] = "published",
    as_json: Json = False,
) -> None:
    """Show where a data set comes from and the range of each column; fetches it if need be.

    Example: twinedge data show cs
    """
    from twinedge.data import load
    from twinedge.data.catalogue import entry_of

    table, entry = load(name, variant), entry_of(name)
    columns = [
        {"column": column, "min": values.min(), "mean": values.mean(), "max": values.max()}
        for column, values in zip(
            (*table.feature_names, table.target_name), (*table.X.T, table.y), strict=True
        )
    ]
    if as_json:
        print_json(
            {"dataset": table.name, "rows": table.rows, "source": table.source, "columns": columns}
        )
        return
    print(
        f"{table.title}: {table.rows} rows, {table.features} features; target {table.target_name}"
    )
    print(f"From {table.source}. {entry.licence}")
    print_table(
        [(c["column"], *(f"{c[k]:.6g}" for k in ("min", "mean", "max"))) for c in columns],
        ("column", "min", "mean", "max"),
    )
