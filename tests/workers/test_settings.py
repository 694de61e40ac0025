"""The settings: every wrong value is one sentence that names its variable and never repeats a password."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workers import settings
from workers.settings import SettingsError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("RELEVO_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_defaults_and_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELEVO_DATABASE_URL", "")
    chosen = settings.load()
    assert (chosen.database_url, chosen.broker_url, chosen.tokens_file, chosen.log) == (None, None, None, "text")
    assert (chosen.home, chosen.catalogue) == (tmp_path / ".relevo", tmp_path / "relevo.toml")
    monkeypatch.setenv("RELEVO_HOME", "below/home")
    assert settings.load().home == tmp_path / "below" / "home"


def test_what_is_set_is_taken_and_passwords_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    database = "postgresql://u:secretpw@/db?host=/run/pg&port=5432"
    monkeypatch.setenv("RELEVO_DATABASE_URL", database)
    monkeypatch.setenv("RELEVO_BROKER_URL", "valkeys://:secretpw@h:6379/0")
    chosen = settings.load()
    assert chosen.require_database() == database
    assert chosen.require_broker() == "rediss://:secretpw@h:6379/0"
    assert "secretpw" not in repr(chosen)


@pytest.mark.parametrize("name", ["DATABASE_URL", "HOME", "LOG", "HOST", "CATALOGUE"])
def test_bytes_that_are_no_text_are_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"RELEVO_{name}", "secretpw\udcff")
    with pytest.raises(SettingsError) as refused:
        settings.load()
    assert str(refused.value) == f"RELEVO_{name} holds bytes that are no text; write it in UTF-8."


def test_a_home_in_a_folder_without_a_name_in_text_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "caf\udce9").mkdir()
    monkeypatch.chdir(tmp_path / "caf\udce9")
    with pytest.raises(SettingsError, match="RELEVO_HOME lies in a folder whose name is no text"):
        settings.load()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "mysql://u:secretpw@h/d"),
        ("DATABASE_URL", "postgresql://u:secretpw@h:port/d"),
        ("DATABASE_URL", "postgresql://u:secretpw@h:0/d"),
        ("DATABASE_URL", "postgresql://"),
        ("DATABASE_URL", "secretpw"),
        ("DATABASE_URL", "postgresql://u:secretpw@[h/d"),
        ("BROKER_URL", "sqs://u:secretpw@h"),
        ("BROKER_URL", "redis://:secretpw@h:99999/0"),
        ("PORT", "0"),
        ("PORT", "65536"),
        ("PORT", "80x"),
        ("PORT", "²"),
        ("LOG", "xml"),
        ("FLOWER_AUTH", "secretpw"),
        ("FLOWER_AUTH", ":secretpw"),
        ("FLOWER_AUTH", "user:"),
        ("FLOWER_URL", "flower.example"),
        ("GRAFANA_URL", "javascript:alert(1)"),
        ("GRAFANA_URL", "http://[h"),
        ("CATALOGUE", "missing/relevo.toml"),
        ("CATALOGUE", "/"),
    ],
)
def test_a_wrong_value_is_one_sentence_that_names_the_variable(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"RELEVO_{name}", value)
    with pytest.raises(SettingsError) as raised:
        settings.load()
    sentence = str(raised.value)
    assert sentence.startswith(f"RELEVO_{name} ")
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert "secretpw" not in sentence


def test_what_is_needed_and_missing_is_named() -> None:
    with pytest.raises(SettingsError, match="RELEVO_DATABASE_URL is not set"):
        settings.load().require_database()
    with pytest.raises(SettingsError, match="RELEVO_BROKER_URL is not set"):
        settings.load().require_broker()


def test_loading_them_does_not_load_celery() -> None:
    code = "import sys; from workers import settings; settings.load(); sys.exit('celery' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, timeout=60)
