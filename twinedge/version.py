"""The version, and the address of the project; this is the only place that states them."""

__version__ = "0.1.0"
# Of the repository, until there is a public one an address that nobody can have. `make version`
# writes it into the manifests; links and pictures of a package's description begin with it.
ADDRESS = "https://twinedge.example/twinedge"
