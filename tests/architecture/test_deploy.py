"""What deploys a cluster: manifests that hold to their schemas, and commands that there are."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import click
import kubernetes_validate
import pytest
import yaml

from nacre.cli.root import cli

_DEPLOY = Path(__file__).parents[2] / "deploy"
_KUBERNETES = "1.37"
_PLACEHOLDERS = {
    "${NACRE_HTTP}": "8765",
    "${NACRE_NAME}": "memory.example.org",
    "${NACRE_NAME:-localhost}": "localhost",
}


def _manifests() -> list[tuple[str, dict[str, Any]]]:
    files = sorted((_DEPLOY / "kubernetes").glob("*.yaml"))
    return [(file.name, item) for file in files for item in yaml.safe_load_all(file.read_text())]


def _pods() -> list[dict[str, Any]]:
    return [
        item["spec"]["template"]["spec"]
        for _, item in _manifests()
        if "template" in item.get("spec", {})
    ]


def _compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((_DEPLOY / "compose.yaml").read_text())
    return found


def _units() -> Iterator[ConfigParser]:
    for file in sorted((_DEPLOY / "systemd").glob("*.service")):
        unit = ConfigParser(interpolation=None)
        unit.optionxform = str  # type: ignore[assignment,method-assign] # names of systemd have capitals
        unit.read_string(file.read_text())
        yield unit


def _commands() -> list[list[str]]:
    """The words behind ``nacre`` of everything that runs it."""
    found = [container["args"] for pod in _pods() for container in pod["containers"]]
    found += [
        service["command"]
        for service in _compose()["services"].values()
        if service["image"] == "nacre"
    ]
    found += [shlex.split(unit["Service"]["ExecStart"])[1:] for unit in _units()]
    return [[_PLACEHOLDERS.get(word, word) for word in words] for words in found]


@pytest.mark.parametrize(
    ("file", "manifest"),
    [pytest.param(*item, id=f"{item[0]}-{item[1]['kind']}") for item in _manifests()],
)
def test_manifest_validates_against_its_schema(file: str, manifest: dict[str, Any]) -> None:
    assert kubernetes_validate.validate(manifest, _KUBERNETES, strict=True) == _KUBERNETES, file


@pytest.mark.parametrize("words", _commands(), ids=" ".join)
def test_container_commands_and_options_exist(words: list[str]) -> None:
    command: click.Command = cli
    context = click.Context(cli)
    while isinstance(command, click.Group):
        name, *words = words
        found = command.get_command(context, name)
        assert found, name
        command = found
    command.make_context(command.name, words)


def test_containers_run_unprivileged_with_a_read_only_file_system() -> None:
    for pod in _pods():
        assert pod["securityContext"]["runAsNonRoot"]
        assert not pod["automountServiceAccountToken"]
        for container in pod["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"]
            assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/tmp"]  # noqa: S108 - theirs
    for unit in _units():
        assert unit["Service"]["DynamicUser"] == "yes"
        assert unit["Service"]["ProtectSystem"] == "strict"


def test_probes_use_the_right_host_and_allow_shutdown_time() -> None:
    (api,) = [pod for pod in _pods() if "api" in pod["containers"][0]["args"]]
    container = api["containers"][0]
    name = container["args"][container["args"].index("--name") + 1]
    linger = float(container["args"][container["args"].index("--linger") + 1])
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["httpHeaders"] == [{"name": "Host", "value": name}]
    assert api["terminationGracePeriodSeconds"] > linger + 30


def test_deployment_references_only_resources_it_defines() -> None:
    made = {(item["kind"], item["metadata"]["name"]) for _, item in _manifests()}
    for pod in _pods():
        for source in pod["containers"][0]["envFrom"]:
            ((reference, named),) = source.items()
            assert (
                {"configMapRef": "ConfigMap", "secretRef": "Secret"}[reference],
                named["name"],
            ) in made
    assert {item["metadata"].get("namespace", "nacre") for _, item in _manifests()} == {"nacre"}
