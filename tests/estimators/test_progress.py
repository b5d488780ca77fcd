import numpy as np

from twinedge import AnnRegressor, TwinRegressor


def test_a_training_says_nothing_unless_asked(curve, tiny, capfd):
    TwinRegressor(**tiny).fit(*curve).predict(curve[0])
    assert capfd.readouterr() == ("", "")


def test_lines_name_the_stage_on_standard_error_alone(curve, tiny, capfd, monkeypatch):
    monkeypatch.setattr("twinedge.progress.INTERVAL", 0.001)
    TwinRegressor(**tiny, verbose=True).fit(*curve)
    out, err = capfd.readouterr()
    assert out == ""
    assert "Training: " in err
    assert "% done" in err


def test_the_bar_changes_no_bit(curve, tiny):
    shown, silent = (AnnRegressor(**tiny, verbose=v).fit(*curve) for v in (True, False))
    np.testing.assert_array_equal(shown.weights_, silent.weights_)
