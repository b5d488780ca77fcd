"""Topics: where queries come from, and where the answers to each site go.

A filter may stand for many sites: what its wildcards match is the name of the site. Answers and
true values have topics beside the queries: ``plant/+/raw`` takes queries from ``plant/press/raw``,
answers on ``plant/press/prediction`` and learns from ``plant/press/truth``. Where the last level is
a wildcard, as in ``sensors/+``, they are below it: ``sensors/attic/prediction``.
"""

import re

from twinedge.errors import InputError, wrong_value

_MOST_BYTES = 65535
_SHOWN = 80  # characters in a message


class Topics:
    """Topics of queries, answers and true values.

    Parameters
    ----------
    queries : str
        Filter of the topics that queries are published on; ``+`` stands for one level.
    prediction, truth : str
        Last level of the topics for predictions, and of those for true values.

    Attributes
    ----------
    queries, truths : str
        Filters to subscribe to.

    Raises
    ------
    InputError
        If the filter is none, or a topic of answers could be one of queries.

    Examples
    --------
    >>> topics = Topics("plant/+/raw")
    >>> topics.site_of("plant/press/raw"), topics.site_of("plant/press/truth")
    (('press', False), ('press', True))
    >>> topics.prediction("press"), Topics("plant/raw").prediction("")
    ('plant/press/prediction', 'plant/prediction')
    """

    def __init__(self, queries: str, prediction: str = "prediction", truth: str = "truth") -> None:
        _check_filter(queries)
        *base, last = queries.split("/")
        below = last == "+"
        base += [last] * below
        for option, level in (("prediction", prediction), ("truth", truth)):
            if not level or set(level) & set("/+#\0") or level == last:
                raise wrong_value(
                    option,
                    level,
                    f"is not a level of its own: a word like {option!r}, without / + #, and not "
                    f"the last level of {queries!r}",
                )
        if prediction == truth:
            raise InputError(f"predictions and true values need different topics, not {truth!r}")
        self.queries, self.truths = queries, "/".join([*base, truth])
        self._prediction, self._truth, self._base = prediction, truth, base
        levels = "/".join("([^/]+)" if level == "+" else re.escape(level) for level in base)
        between = "/" if base else ""
        truth_level = f"(?P<truth>{between}{re.escape(truth)})"
        ends = f"{truth_level}?" if below else f"(?:{truth_level}|{between}{re.escape(last)})"
        self._pattern = re.compile(levels + ends, re.DOTALL)

    def site_of(self, topic: str) -> tuple[str, bool] | None:
        """Return the name of a topic's site, and whether it is for true values.

        None for a topic that matches neither filter.
        """
        found = self._pattern.fullmatch(topic)
        if found is None:
            return None
        truth = found["truth"]
        return "/".join(found.groups()[: self._base.count("+")]), truth is not None

    def prediction(self, site: str) -> str:
        """Return the topic of predictions for a site."""
        return self._of(site, self._prediction)

    def truth(self, site: str) -> str:
        """Return the topic of true values of a site."""
        return self._of(site, self._truth)

    def _of(self, site: str, last: str) -> str:
        names = iter(site.split("/"))
        return "/".join([next(names) if one == "+" else one for one in self._base] + [last])


def _check_filter(queries: str) -> None:
    fault = None
    levels = queries.split("/")
    if not queries or "\0" in queries or len(queries.encode()) > _MOST_BYTES:
        fault = "is no topic"
    elif queries.startswith("$"):
        fault = "is a topic of the broker itself"
    elif "#" in queries:
        fault = "has no place for answers: name each level, with + for any"
    elif any("+" in level and level != "+" for level in levels):
        fault = "has a + that is not a level of its own"
    if fault:
        raise InputError(f"the topic {queries[:_SHOWN]!r} {fault}, as in plant/+/raw")
