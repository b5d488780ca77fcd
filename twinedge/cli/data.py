"""``twinedge data``: the paper's data sets."""

import click

from twinedge.cli import options
from twinedge.cli.output import print_help, print_json, print_table, print_text


@options.group("data", "data list", "data show cs", "data show cs --json")
@click.pass_context
def data(context: click.Context) -> None:
    """List and show the paper's data sets."""
    print_help(context)


@options.command("list", "data list", "data list --json")
@options.as_json
def list_sets(as_json: bool) -> None:
    """List the data sets by their keys.

    The file of a set is looked for in the folder that the environment variable TWINEDGE_DATA
    names, then among the downloaded files.
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


@options.command("show", "data show cs", "data show wsb --variant paper --json")
@options.argument("name", text="Key of a data set, as in 'list'.", type=str, **options.set_name)
@options.choice(
    "--variant",
    *("published", "paper"),
    default="published",
    text="The published data, or data made as the text of the paper says.",
)
@options.as_json
def show_set(name: str, variant: str, as_json: bool) -> None:
    """Show where a data set comes from and what its columns hold.

    A set that is not on this machine is downloaded and cached.
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


data.add_command(list_sets)
data.add_command(show_set)
