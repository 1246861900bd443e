"""A Pulumi language host for Python: runs programs and policy packs for an engine that was built from source.

The official one is a Go program that is not published as a module. This one serves the same protocol:
https://github.com/pulumi/pulumi/blob/master/proto/pulumi/language.proto
"""

import contextlib
import importlib.metadata
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import IO, Any

import grpc
from google.protobuf import empty_pb2, json_format
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

EXEC = Path(__file__).parent.parent / ".plumbline" / "tools" / "pulumi-language-python-exec"
BAIL = 32
"""Exit code of a program that has told its error already."""
_POLL_SECONDS = 0.5
Context = grpc.ServicerContext


class Children:
    """The programs and plugins that run, so that none is left behind."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()

    def start(self, command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a process that ends with this one."""
        process = subprocess.Popen(command, **options)
        with self._lock:
            self._running.add(process)
        return process

    def forget(self, process: subprocess.Popen[bytes]) -> None:
        """It has ended."""
        with self._lock:
            self._running.discard(process)

    def end(self) -> None:
        """End all that run; those that do not listen are killed."""
        with self._lock:
            running = list(self._running)
        for process in running:
            process.terminate()
        deadline = time.monotonic() + 3
        for process in running:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()


class LanguageHost(language_pb2_grpc.LanguageRuntimeServicer):
    """The protocol, for the interpreter that a project names, or for the one that runs this."""

    def __init__(self, engine: str, children: Children) -> None:
        self._engine = engine
        self._children = children

    def Handshake(
        self, request: language_pb2.LanguageHandshakeRequest, context: Context
    ) -> language_pb2.LanguageHandshakeResponse:
        """Learn the engine's address."""
        self._engine = request.engine_address or self._engine
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: empty_pb2.Empty, context: Context) -> plugin_pb2.PluginInfo:
        """The version of the SDK."""
        return plugin_pb2.PluginInfo(version=importlib.metadata.version("pulumi"))

    def GetRequiredPackages(
        self, request: language_pb2.GetRequiredPackagesRequest, context: Context
    ) -> language_pb2.GetRequiredPackagesResponse:
        """Nothing to fetch ahead: plugins are found on PATH, or named by the project."""
        return language_pb2.GetRequiredPackagesResponse()

    def GetRequiredPlugins(
        self, request: language_pb2.GetRequiredPluginsRequest, context: Context
    ) -> language_pb2.GetRequiredPluginsResponse:
        """As for packages."""
        return language_pb2.GetRequiredPluginsResponse()

    def GetProgramDependencies(
        self, request: language_pb2.GetProgramDependenciesRequest, context: Context
    ) -> language_pb2.GetProgramDependenciesResponse:
        """What is installed in the program's environment."""
        command = [self._interpreter(request.info, context), "-m", "pip", "list", "--format", "json"]
        listed = subprocess.run(command, capture_output=True, text=True, check=False)
        found = json.loads(listed.stdout) if listed.returncode == 0 else []
        if not found:
            found = [{"name": d.name, "version": d.version} for d in importlib.metadata.distributions()]
        dependencies = [language_pb2.DependencyInfo(name=d["name"], version=d["version"]) for d in found]
        return language_pb2.GetProgramDependenciesResponse(dependencies=dependencies)

    def InstallDependencies(
        self, request: language_pb2.InstallDependenciesRequest, context: Context
    ) -> Iterator[language_pb2.InstallDependenciesResponse]:
        """Environments are made by their own tools, from a lock file: nothing is installed behind their back."""
        text = (
            "dependencies are not installed by this language host: make the project's environment with its own tool\n"
        )
        yield language_pb2.InstallDependenciesResponse(stderr=text.encode())

    def About(self, request: language_pb2.AboutRequest, context: Context) -> language_pb2.AboutResponse:
        """The interpreter."""
        return language_pb2.AboutResponse(
            executable=self._interpreter(request.info, context), version=sys.version.split()[0]
        )

    def Cancel(self, request: empty_pb2.Empty, context: Context) -> empty_pb2.Empty:
        """The engine cancels its resource monitor as well, which is what ends the program."""
        return empty_pb2.Empty()

    def Run(self, request: language_pb2.RunRequest, context: Context) -> language_pb2.RunResponse:
        """Run a program to its end."""
        interpreter = self._interpreter(request.info, context)
        flags = {
            "--monitor": request.monitor_address,
            "--engine": self._engine,
            "--project": request.project,
            "--stack": request.stack,
            "--pwd": request.pwd,
            "--root_directory": request.info.root_directory,
            "--parallel": str(request.parallel),
            "--organization": request.organization or "organization",
        }
        command = [interpreter, "-u", str(EXEC)]
        command += [word for flag, value in flags.items() for word in (flag, value)]
        command += ["--dry_run", "true"] if request.dryRun else []
        program = Path(request.info.program_directory) / request.info.entry_point
        environment = {
            **os.environ,
            "PULUMI_CONFIG": json.dumps(dict(request.config)),
            "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
        }
        process = self._children.start([*command, str(program), *request.args], env=environment, cwd=request.pwd)
        context.add_callback(lambda: _terminate(process))
        code = process.wait()
        self._children.forget(process)
        if code == 0:
            return language_pb2.RunResponse()
        if code == BAIL:
            return language_pb2.RunResponse(bail=True)
        return language_pb2.RunResponse(error=f"the program {_ending(code)}")

    def RunPlugin(
        self, request: language_pb2.RunPluginRequest, context: Context
    ) -> Iterator[language_pb2.RunPluginResponse]:
        """Run a policy pack or another plugin that is a Python program, and pass on what it writes."""
        interpreter = self._interpreter(request.info, context)
        program = str(Path(request.info.program_directory) / request.info.entry_point)
        arguments = list(request.args)
        if request.kind == "analyzer":
            arguments = ["-m", "pulumi.policy", *arguments[:1], program]
        else:
            arguments = [program, *arguments]
        environment = dict(pair.split("=", 1) for pair in request.env) or None
        process = self._children.start(
            [interpreter, "-u", *arguments],
            env=environment,
            cwd=request.pwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        context.add_callback(lambda: _terminate(process))
        assert process.stdout
        assert process.stderr
        for name, line in _lines(stdout=process.stdout, stderr=process.stderr):
            wrapped: dict[str, Any] = {name: line}
            yield language_pb2.RunPluginResponse(**wrapped)
        code = process.wait()
        self._children.forget(process)
        yield language_pb2.RunPluginResponse(exitcode=code)

    def _interpreter(self, info: language_pb2.ProgramInfo, context: Context) -> str:
        """The interpreter of the `virtualenv` option, relative to the project; without one, that of this process."""
        options = json_format.MessageToDict(info.options) if info.HasField("options") else {}
        named = options.get("virtualenv")
        if not named:
            return sys.executable
        folder = Path(info.root_directory) / str(named)
        for candidate in (folder / "bin" / "python", folder / "Scripts" / "python.exe"):
            if candidate.exists():
                return str(candidate)
        text = f"no Python in {folder}, which Pulumi.yaml names as runtime.options.virtualenv: make it first"
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, text)
        raise AssertionError("abort raises")


def _terminate(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()


def _ending(code: int) -> str:
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
    return f"exited with code {code}"


def _lines(**streams: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    """Lines of several streams, as they come."""
    lines: queue.Queue[tuple[str, bytes | None]] = queue.Queue()

    def read(name: str, stream: IO[bytes]) -> None:
        for line in iter(stream.readline, b""):
            lines.put((name, line))
        lines.put((name, None))

    for name, stream in streams.items():
        threading.Thread(target=read, args=(name, stream), daemon=True).start()
    left = len(streams)
    while left:
        name, line = lines.get()
        if line is None:
            left -= 1
        else:
            yield name, line


def main() -> None:
    """Serve one engine until it asks to end, or is gone."""
    addresses = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    children, ended, parent = Children(), threading.Event(), os.getppid()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
    host = LanguageHost(addresses[-1] if addresses else "", children)
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    while not ended.wait(_POLL_SECONDS) and os.getppid() == parent:
        pass
    children.end()
    if os.getpgrp() == os.getpid():  # the engine gave this process a group: what programs started is in it as well
        os.killpg(os.getpgrp(), signal.SIGTERM)
    server.stop(0)


if __name__ == "__main__":
    main()
