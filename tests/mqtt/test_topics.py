"""Topics of queries, and the answers' beside them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinedge.mqtt.topics import Topics

LEVEL = st.text(
    st.characters(exclude_characters="/+#\0$", exclude_categories=["Cs"]), min_size=1, max_size=5
)
FILTER = st.lists(st.one_of(st.just("+"), LEVEL), min_size=1, max_size=5).map("/".join)


@given(FILTER.filter(bool), st.data())
def test_answers_go_beside_the_query_and_never_look_like_one(pattern, data):
    last = pattern.split("/")[-1]
    if last in ("prediction", "truth"):
        return
    topics = Topics(pattern)
    levels = [data.draw(LEVEL) if one == "+" else one for one in pattern.split("/")]
    site, is_truth = topics.site_of("/".join(levels))
    assert not is_truth
    base = levels if last == "+" else levels[:-1]
    assert topics.prediction(site) == "/".join([*base, "prediction"])
    assert topics.truth(site) == "/".join([*base, "truth"])
    assert topics.site_of(topics.truth(site)) == (site, True)
    assert topics.site_of(topics.prediction(site)) is None


def test_other_topics_belong_to_no_site():
    topics = Topics("plant/+/raw")
    for topic in (
        "plant/raw",
        "plant/a/b/raw",
        "plant/a/raw/x",
        "Plant/a/raw",
        "plant/a/ra",
        "plant//raw",
        "",
    ):
        assert topics.site_of(topic) is None


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["plant/#"], "has no place for answers"),
        (["plant/a+/raw"], "a + that is not a level of its own"),
        (["$SYS/x"], "a topic of the broker itself"),
        ([""], "is no topic"),
        ([70_000 * "x"], "is no topic"),
        (["a/raw", "raw"], "prediction='raw' is not a level of its own"),
        (["a/raw", "x/y"], "prediction='x/y'"),
        (["a/raw", "p", ""], "truth=''"),
        (["a/raw", "p", "p"], "different topics"),
    ],
)
def test_what_could_not_be_answered_is_refused(complaint, arguments, says):
    assert says in complaint(Topics, *arguments)
