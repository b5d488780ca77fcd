import numpy as np

from twinedge import AnnRegressor, TwinRegressor


def test_a_training_says_nothing_unless_asked(curve, tiny, capfd):
    TwinRegressor(**tiny).fit(*curve).predict(curve[0])
    assert capfd.readouterr() == ("", "")


def test_a_bar_names_the_stage_on_standard_error_alone(curve, tiny, capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    monkeypatch.setenv("TERM", "xterm")
    TwinRegressor(**tiny, verbose=True).fit(*curve)
    out, err = capfd.readouterr()
    assert out == ""
    assert "final round" in err
    assert "loss" in err
    assert "val" in err
    for stage in ("validation error", "how large errors are", "intervals"):
        assert stage in err


def test_the_bar_changes_no_bit(curve, tiny):
    shown, silent = (AnnRegressor(**tiny, verbose=v).fit(*curve) for v in (True, False))
    np.testing.assert_array_equal(shown.weights_, silent.weights_)
