"""The one test that goes through scikit-learn's downloader, with a fake network."""

import gzip
import hashlib
import io
import json

import numpy as np
import pytest

from twinedge.data.catalogue import CATALOGUE
from twinedge.data.fetch import fetch

_openml = pytest.importorskip("sklearn.datasets._openml")

RAD_LABELS = ["1", "2", "3", "5", "4", "8", "6", "7", "24"]  # out of order: a code is not its value


def test_scikit_learn_hands_over_what_openml_serves(true_folder, true_values, monkeypatch, nowhere):
    """From answers in OpenML's format, through scikit-learn, to our table."""
    entry = CATALOGUE["bh"]
    names = [*entry.feature_names, entry.target_name]
    kinds = {"CHAS": "{'0','1'}", "RAD": "{" + ",".join(f"'{r}'" for r in RAD_LABELS) + "}"}
    rows = (true_folder / "bh.csv").read_text().split("\n", 1)[1]
    head = "".join(f"@ATTRIBUTE {name} {kinds.get(name, 'REAL')}\n" for name in names)
    arff = f"@RELATION boston\n{head}@DATA\n{rows}".encode()
    features = [
        {
            "index": str(k),
            "name": name,
            "data_type": "nominal" if name in kinds else "numeric",
            "is_target": str(name == "MEDV").lower(),
            "is_ignore": "false",
            "is_row_identifier": "false",
        }
        for k, name in enumerate(names)
    ]
    description = {
        "id": "531",
        "name": "boston",
        "version": "1",
        "description": "",
        "format": "ARFF",
        "file_id": "52643",
        "status": "active",
        "default_target_attribute": "MEDV",
        "md5_checksum": hashlib.md5(arff).hexdigest(),
        "url": "https://api.openml.org/data/v1/download/52643/boston.arff",
    }
    qualities = [{"name": "NumberOfInstances", "value": "506.0"}]
    served = {
        "/data/features/531": {"data_features": {"feature": features}},
        "/data/qualities/531": {"data_qualities": {"quality": qualities}},
        "/json/data/531": {"data_set_description": description},
    }

    def urlopen(request, *_, **__):
        for end, content in served.items():
            if request.full_url.endswith(end):
                answer = io.BytesIO(json.dumps(content).encode())
                answer.info = dict
                return answer
        answer = io.BytesIO(gzip.compress(arff))
        answer.info = lambda: {"Content-Encoding": "gzip"}
        return answer

    monkeypatch.setattr(_openml, "urlopen", urlopen)
    values, _ = fetch(entry)
    np.testing.assert_array_equal(values, true_values("bh"))
