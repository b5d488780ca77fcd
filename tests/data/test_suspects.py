"""Remarks name what looks wrong in a table, with its column and rows, and nothing else."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.conftest import FILES
from twinedge.data.source import from_table
from twinedge.data.suspects import suspects
from twinedge.encoding.tables import Column
from twinedge.errors import Parameter

N = 300
RNG = np.random.default_rng(7)
A, B, NOISE = RNG.normal(20, 5, N), RNG.uniform(0, 5, N), RNG.normal(size=N)
Y = 2 * A + B**2 + NOISE
CLEAN = {"a": A, "b": B, "y": Y}


def remarks_on(grouped=False, **columns):
    """Remarks on a table whose first row has number 2; ``y`` is the target."""
    columns = {**CLEAN, **columns}
    y = columns.pop("y")
    features = [Column(name, np.asarray(one, float)) for name, one in columns.items()]
    return suspects(features, np.asarray(y, float), "y", np.arange(2, len(y) + 2), grouped=grouped)


def changed(values, **cells):
    """Put values in place of others: ``r5=-9999`` in the row with number 5."""
    values = np.array(values, float)
    for row, value in cells.items():
        values[int(row[1:]) - 2] = value
    return values


def written(write, columns, name="t.csv"):
    rows = zip(*(np.asarray(one).tolist() for one in columns.values()), strict=True)
    lines = [",".join(columns), *(",".join(map(repr, row)) for row in rows)]
    return write("\n".join(lines) + "\n", name)


def test_a_clean_table_gets_no_remark():
    assert remarks_on() == []


class TestCells:
    def test_a_code_that_repeats(self):
        (remark,) = remarks_on(a=changed(A, r5=-9999, r90=-9999))
        low, high = (f"{one:g}" for one in (np.delete(A, [3, 88]).min(), A.max()))
        assert remark == (
            "-9999 is far from all other values of column 'a' (rows 5, 90; the others are "
            f"{low} to {high}): correct it or, if it stands for a missing value, use "
            "missing=[-9999]"
        )
        assert remark.parts[-1] == Parameter("missing", [-9999])

    def test_of_many_columns_with_the_same_code_the_first_are_named(self):
        many = {f"a{k}": changed(A, r5=-9999) for k in range(14)}
        (remark,) = remarks_on(**many)
        assert "'a11' (row 5; the others are" in remark
        assert "'a12'" not in remark
        assert ", 2 columns more: correct it or" in remark

    @pytest.mark.parametrize("code", [99999, -9999, -999.25, 1e20, 3.4028234663852886e38])
    def test_one_cell_is_enough_if_it_is_absurd(self, code):
        (remark,) = remarks_on(a=changed(A, r17=code))
        assert "(row 17; the others" in remark
        given = remark.parts[-1].value[0]
        assert float(given) == code
        assert not isinstance(given, float) or float(f"{given:g}") == code  # as a shell gets it

    def test_zeros_where_nothing_else_is_near(self):
        pressure = 1000 + A
        (remark,) = remarks_on(pressure=changed(pressure, r3=0, r4=0))
        assert remark.startswith("0 is far from all other values of column 'pressure' (rows 3, 4;")
        assert remarks_on(rain=np.where(NOISE > 0, NOISE, 0)) == []

    def test_a_slip_of_the_decimal_point(self):
        (remark,) = remarks_on(a=changed(A, r100=235.7))
        assert "column 'a' (row 100;" in remark

    def test_a_target_beyond_all_others(self):
        (remark,) = remarks_on(y=changed(Y, r200=1e6))
        assert remark.startswith("1000000 is far from all other values of target 'y' (row 200;")
        assert remark.endswith("use missing=[1000000] and drop_missing_target=True")

    def test_several_in_one_column(self):
        (remark,) = remarks_on(a=changed(A, r5=99999, r6=-9999, r7=88888))
        assert remark.startswith("-9999, 88888, 99999 are far from all other values of column 'a' ")
        assert "(rows 5, 6, 7;" in remark
        assert remark.endswith("use missing=[-9999, 88888, 99999]")

    def test_many_rows_are_counted(self):
        (remark,) = remarks_on(a=np.where(np.arange(N) % 10 < 9, -200, A))  # fills most of a column
        assert "(rows 2, 3, 4, 5, 6 and 265 more;" in remark

    def test_the_same_code_in_many_columns_is_one_remark(self):
        """As in tables of air quality: -200 is far from some values, and less so from others."""
        near = changed(1000 + 200 * NOISE, r8=-200, r9=-200)
        (remark,) = remarks_on(a=changed(A, r5=-200, r6=-200), b=changed(B, r5=-200), near=near)
        assert remark.startswith("-200 is far from all other values of column 'a' (rows 5, 6;")
        assert ", column 'b' (row 5;" in remark
        assert ", column 'near' (rows 8, 9;" in remark
        assert remarks_on(near=near) == []  # by itself, it may be a measurement

    def test_a_code_beside_a_few_levels(self):
        answers = RNG.integers(1, 6, N)
        assert remarks_on(answer=answers) == []
        (remark,) = remarks_on(answer=changed(answers, r50=99))
        assert remark.startswith("99 is far from all other values of column 'answer' (row 50;")
        doses = np.array([0.0, 1, 10, 100, 1000])[RNG.integers(0, 5, N)]
        assert remarks_on(dose=doses) == []

    def test_missing_cells_are_not_looked_at(self):
        (remark,) = remarks_on(a=changed(A, r5=np.nan, r6=np.nan, r7=-9999))
        assert "(row 7;" in remark
        assert remarks_on(a=changed(A, r5=np.nan)) == []

    def test_a_bad_cell_hides_nothing_else(self):
        found = remarks_on(a=changed(1000 * Y, r5=-9e6), y=changed(Y, r9=1e6))
        assert [one.partition(" is ")[0] for one in found] == ["-9000000", "1000000", "column 'a'"]

    def test_a_cap_is_no_code(self):
        assert remarks_on(y=np.minimum(Y, np.quantile(Y, 0.9))) == []


class TestIds:
    numbers = np.arange(N)

    @pytest.mark.parametrize(
        "values",
        [
            numbers + 5,
            N - numbers,
            RNG.permutation(N),
            RNG.choice(int(1.3 * N), N, replace=False),
        ],
        ids=["in order", "backwards", "shuffled", "with gaps"],
    )
    def test_numbers_of_rows(self, values):
        (remark,) = remarks_on(k=values)
        assert remark == (
            "column 'k' numbers the rows: unless that means something, leave it out with drop=['k']"
        )

    def test_several_are_one_remark(self):
        (remark,) = remarks_on(k=self.numbers, m=self.numbers + 7)
        assert remark.parts[-1] == Parameter("drop", ["k", "m"])

    @pytest.mark.parametrize("name", ["ID", "customer_id", "customerId", "Serial"])
    def test_a_name_is_enough(self, name):
        ids = RNG.choice(10**7, N, replace=False)
        assert [one.partition(" numbers")[0] for one in remarks_on(**{name: ids})] == [
            f"column '{name}'"
        ]
        assert remarks_on(population=ids) == []
        assert remarks_on(**{name: ids + 0.5}) == []

    def test_the_only_feature_is_kept(self):
        y = np.sqrt(np.arange(100.0))
        only = [Column("angle", np.arange(100.0))]
        assert suspects(only, y, "y", np.arange(100)) == []
        assert suspects([Column("batch", np.arange(100.0) // 5)], y, "y", np.arange(100)) == []

    def test_counts_and_levels_are_no_ids(self):
        assert remarks_on(count=RNG.poisson(50, N), level=RNG.integers(0, 9, N)) == []


class TestClocks:
    times = 1_700_000_000 + np.cumsum(RNG.integers(1, 120, N))

    @pytest.mark.parametrize(
        ("unit", "ticks"), [("seconds", 1), ("milliseconds", 1e3), ("microseconds", 1e6)]
    )
    def test_times_since_1970(self, unit, ticks):
        (remark,) = remarks_on(t=self.times * ticks)
        assert remark.startswith(
            f"column 't' holds times in {unit} since 1970, 2023-11-14 to 2023-11-15: "
        )
        assert remark.parts[-1] == Parameter("drop", ["t"])

    def test_in_any_order_by_name(self):
        assert len(remarks_on(timestamp=RNG.permutation(self.times))) == 1
        assert remarks_on(income=RNG.permutation(self.times)) == []

    def test_frequencies_are_no_times(self):
        assert remarks_on(frequency=np.linspace(1e9, 1.6e9, N).round(-6)) == []


class TestGroups:
    machine = np.repeat(np.arange(10), N // 10)
    offsets = np.array([3.0, -8, 9, 0, -6, 7, -2, 8, -9, 4])

    def test_numbers_of_machines(self):
        (remark,) = remarks_on(kind=self.machine, y=Y + 10 * self.offsets[self.machine])
        assert remark == (
            "column 'kind' has 10 different whole numbers for 300 rows, like numbers of machines "
            "or batches: if it says which rows belong together, name it as group='kind'; if its "
            "numbers stand for names, use categorical=['kind']"
        )
        assert remark.parts[1] == Parameter("group", "kind")

    def test_a_setting_is_a_number(self):
        """Rows come in blocks as well, but the target follows it, up or up and down."""
        assert remarks_on(setting=self.machine, y=Y + 30 * self.machine) == []
        assert remarks_on(setting=self.machine, y=Y + 30 * (self.machine - 4) ** 2) == []

    def test_blocks_that_do_not_differ(self):
        assert remarks_on(setting=self.machine) == []

    @pytest.mark.parametrize("name", ["machine", "machine_no", "Subject ID", "batch"])
    def test_a_name_is_enough(self, name):
        (remark,) = remarks_on(**{name: RNG.permutation(self.machine)})
        assert remark.startswith(f"column '{name}' has 10 different whole numbers")

    def test_known_groups_get_no_remark(self):
        assert remarks_on(machine=self.machine, grouped=True) == []


class TestLeaks:
    @pytest.mark.parametrize(
        "leak",
        [
            1000 * Y,
            -Y,
            np.log(Y + 100),
            np.exp(Y / 20),
            np.rint(Y),
            Y + 1e-3 * Y.std() * NOISE,
            (Y - np.median(Y)) ** 2,
        ],
        ids=["scaled", "negative", "log", "exp", "rounded", "noisy", "squared"],
    )
    def test_functions_of_the_target(self, leak):
        (remark,) = remarks_on(leak=leak)
        assert remark == (
            "column 'leak' is nearly a function of the target 'y' alone: unless it is known before "
            "the target is, leave it out with drop=['leak']"
        )

    @pytest.mark.parametrize("noise", [0.05, 0.2, 1.0])
    def test_a_good_feature_is_no_leak(self, noise):
        assert remarks_on(good=Y + noise * Y.std() * NOISE) == []

    def test_the_only_feature_may_explain_everything(self):
        assert suspects([Column("raw", 1000 * Y)], Y, "y", np.arange(N)) == []

    def test_groups_that_share_feature_and_target(self):
        """Each group has a height and a target of its own: too few points to tell."""
        group = np.repeat(np.arange(15), 20)
        assert remarks_on(height=A[:15][group], y=Y[:15][group]) == []

    def test_a_sorted_table_with_few_levels_of_the_target(self):
        quality = np.rint(RNG.normal(6, 1, N))
        assert remarks_on(acid=np.sort(NOISE), y=quality) == []

    def test_in_a_long_table(self):
        y = RNG.normal(size=50_000)
        columns = [Column("leak", 2 * y), Column("other", RNG.normal(size=50_000))]
        (remark,) = suspects(columns, y, "y", np.arange(50_000))
        assert remark.startswith("column 'leak' ")


DRAWS = {
    "normal": lambda rng, n: rng.normal(5, 2, n),
    "uniform": lambda rng, n: rng.uniform(size=n),
    "lognormal": lambda rng, n: rng.lognormal(size=n),
    "counts": lambda rng, n: rng.poisson(20, n).astype(float),
    "rounded": lambda rng, n: rng.lognormal(size=n).round(1),
}


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize(
    ("n", "draws"), [(30, 100), pytest.param(300, 100, marks=pytest.mark.slow)]
)
def test_clean_tables_get_no_remark(kind, n, draws):
    """At most 1 % of them."""
    wrong = 0
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        X = np.column_stack([DRAWS[kind](rng, n) for _ in range(5)])
        y = X @ rng.normal(size=5) + 0.1 * rng.normal(size=n)
        columns = [Column(f"x{k}", one) for k, one in enumerate(X.T)]
        wrong += bool(suspects(columns, y, "y", np.arange(n)))
    assert wrong <= draws / 100


@pytest.mark.parametrize("name", FILES)
def test_tables_that_people_use_get_no_remark(true_folder, name):
    source = from_table(true_folder / f"{name}.csv", target=-1)
    assert [one for one in source.remarks if "identical to an earlier one" not in one] == []


NUMBERS = st.one_of(
    st.floats(-1e300, 1e300), st.integers(-3, 3).map(float), st.just(-9999.0), st.just(np.nan)
)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 40), st.integers(1, 3), st.data())
def test_whatever_the_numbers_they_stay_as_they_are(n, count, data):
    lists = [data.draw(st.lists(NUMBERS, min_size=n, max_size=n)) for _ in range(count + 1)]
    *values, y = map(np.array, lists)
    columns = [Column(f"x{k}", one) for k, one in enumerate(values)]
    before = [one.tobytes() for one in (*values, y)]
    for remark in suspects(columns, y, "y", np.arange(n)):
        assert len(remark.splitlines()) == 1
    assert [one.tobytes() for one in (*values, y)] == before


def test_rows_are_numbered_as_in_the_file(write):
    """A comment, a bad row and one without a target come before the cell."""
    bad = {**CLEAN, "a": changed(A, r30=-9999)}
    header, *rows = written(write, bad).read_text().splitlines()
    rows[2:2] = ["# a note", "1,2", "3,4,"]
    path = write("\n".join([header, *rows]) + "\n")
    source = from_table(path, target="y", skip_bad_rows=True, drop_missing_target=True)
    assert source.remarks[-1].startswith(f"{path}: -9999 is far from all other values of column")
    assert "(row 33;" in source.remarks[-1]
    assert len(source.y) == N


def test_a_category_of_quantities_is_noticed(write):
    loads = np.array(["5 kg", "10 kg", "20 kg"])[np.arange(N) % 3]
    rows = "".join(f"{k},{y!r}\n" for k, y in zip(loads, Y.tolist(), strict=True))
    source = from_table(write("load,y\n" + rows), target="y")
    assert [one.partition(": ")[2] for one in source.remarks] == [
        "column 'load' is a category of 3 levels; these are numbers with 'kg': without it they "
        "would be quantities"
    ]


def test_columns_of_names_are_not_looked_at(write):
    kinds = np.array(["p", "q", "r"])[np.arange(N) % 3]
    rows = "".join(
        f"{k},{a!r},{y!r}\n" for k, a, y in zip(kinds, A.tolist(), Y.tolist(), strict=True)
    )
    source = from_table(write("machine,a,y\n" + rows), target="y")
    assert [one.partition(": ")[2] for one in source.remarks] == [
        "column 'machine' is a category of 3 levels"
    ]
