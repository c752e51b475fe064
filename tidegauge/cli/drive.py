"""tidegauge drive: a broker or a KRaft controller is taken step by step through paths, and compared with the reference.

A *node* is what is driven: an adapter, which is the user's program around a broker of any make (CMD), or a *build* of Kafka,
a release or a checkout (--kafka). A *case* or path is a sequence of steps from an initial state. A *cover* is paths that
take every local step of a model's state graph. A *profile* is the switches of one generation of the protocol, by which the
reference behaves. A *finding* (F1 .. F13) is a bug of Kafka that this project found. The functions take the parsed options,
`args`; those that drive something print their results and return the exit code.

A profile has a name: `profile_named` finds it by that, `release-4.1.1` (RELEASE before the number) is that of a release, and
SAFE that of a broker that is not Kafka. `reference(profile)` is the reference, with whose reports those of a node are
compared. `node.capabilities` is what the node has said of itself, its name among that. A *run* (`DriveRun`) has the
differences that were found (`played.differences`: of each the case, and at which step), and the exit code. A *transcript* is
what a `Recorder` kept of a run. `progress` prints a line while work goes on.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegauge.cli import recordings
from tidegauge.cli.options import add_profile, chosen_profile, natural, positive, seconds
from tidegauge.cli.terminal import aside, echo, silent
from tidegauge.util.errors import CONFORMS, FAILS, UsageError
from tidegauge.util.files import writable

if TYPE_CHECKING:
    from tidegauge.drive.broker.reference import BrokerReference
    from tidegauge.drive.controller.contract import ControllerCase
    from tidegauge.drive.controller.node import ControllerNode
    from tidegauge.drive.controller.reference import ControllerReference
    from tidegauge.drive.kafka_broker.node import KafkaNode
    from tidegauge.drive.kafka_process.builds import KafkaBuild
    from tidegauge.drive.paths.selection import Choice
    from tidegauge.drive.runner.compare import Comparison
    from tidegauge.drive.runner.run import DriveRun
    from tidegauge.drive.transports.stdio import StdioNode
    from tidegauge.impl.profiles import Profile

SECONDS = 10.0
"""Without output from an adapter, before it counts as hung."""
CONTROLLER_WALKS = 100
CLUSTER_WALKS = 200


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tidegauge drive` to its parser."""
    broker = parser.add_argument_group("the broker (CMD, --kafka, --compare or --cluster)")
    broker.add_argument("command", nargs="*", metavar="CMD", help="the command that starts the broker's adapter, after --")
    broker.add_argument(
        "--kafka",
        metavar="BUILD",
        help="an unmodified broker of this release of Kafka, such as 4.1.1; or of a build in a folder: a distribution, a "
        "Gradle checkout that was built, or jars",
    )
    broker.add_argument(
        "--compare",
        nargs=2,
        metavar=("ONE", "OTHER"),
        help="compare two recorded releases, or two transcripts; no broker is started",
    )
    broker.add_argument(
        "--cluster",
        nargs="+",
        metavar="BUILD",
        help="a whole partition: unmodified brokers of these builds, and the adapter after -- if there is one, on random "
        f"walks of their cluster (default {CLUSTER_WALKS}); each gets the requests and responses of the others",
    )
    broker.add_argument(
        "--finding",
        metavar="NAME",
        help="with --cluster: play a finding (F1, F2, F3, F5, F9, F11 or F13) instead of walks, up to the read that "
        "misses an acknowledged record; from F5 on with a controller of the first build",
    )
    parser.add_argument(
        "--jars",
        metavar="DIR",
        help="with --kafka RELEASE: the directory of its jars (default: Maven fetches them once, into the user's cache)",
    )
    parser.add_argument(
        "--baseline",
        metavar="BUILD",
        help="with --kafka: also drive this build, on the same paths, and show where the build of --kafka differs from it",
    )
    parser.add_argument("--summary", metavar="FILE", help="with --baseline: write what differs to FILE as Markdown")
    parser.add_argument("--junit", metavar="FILE", help="with --baseline: write what differs to FILE as JUnit XML")
    parser.add_argument(
        "--controller",
        action="store_true",
        help="with --kafka: drive the KRaft controller instead of a broker, with the scenarios of the findings, requests "
        f"that must be refused and random walks (default {CONTROLLER_WALKS}); with --cover, every step of the graphs of "
        "spec/Controller.tla instead",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--smoke", action="store_true", help="take only ten steps, to see whether the adapter works at all")
    what.add_argument("--cover", action="store_true", help="take every local step of the graphs (the default)")
    parser.add_argument(
        "--graph", action="append", metavar="NAME", help="cover this graph instead of the usual ones; may be repeated"
    )
    parser.add_argument(
        "--walks",
        type=positive,
        metavar="N",
        help="take N random walks with hostile inputs, instead of the cover, or with --cover beside it",
    )
    parser.add_argument(
        "--scenarios",
        action="store_true",
        help="play the scenarios of conformance/scenarios as one broker sees them, instead of the cover, or with --cover "
        "beside it",
    )
    parser.add_argument(
        "--scenario",
        action="append",
        metavar="NAME",
        help="play one scenario, named by its file or its finding (F1, F2, F3); print each step with the broker's "
        "response, and a verdict",
    )
    parser.add_argument("--seed", type=natural, default=1, help="seed of the walks (default 1)")
    parser.add_argument(
        "--record", metavar="FILE", help="write the broker's reports to FILE as a transcript, for tidegauge recheck"
    )
    parser.add_argument(
        "--export-junit",
        metavar="PATH",
        help="with --kafka: write each difference as a JUnit test for Kafka's own tree, to a folder such as a checkout, or "
        "to a .java file; with --scenario F1 .. F13: write only the test of that finding, and start nothing",
    )
    parser.add_argument(
        "--badge", metavar="FILE", help="write the outcome to FILE as JSON for an endpoint badge of shields.io"
    )
    recordings.add_coverage(parser, "--coverage", "also write to FILE which parts of the model the run has exercised")
    recordings.add_results(parser)
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=SECONDS,
        help=f"seconds without a line of output before the adapter is considered hung (default {SECONDS:g})",
    )
    parser.add_argument(
        "--json-schema", action="store_true", help="print the JSON Schema of an adapter's lines, and drive nothing"
    )
    add_profile(parser, "the profile that the broker is expected to have (default: safe, or that of the --kafka release)")


def run(args: argparse.Namespace) -> int:
    """Drive a broker in any language through every local step of the model, and report where it first differs."""
    if args.json_schema:
        from importlib.resources import files

        echo(files("tidegauge").joinpath("drive", "schema.json").read_text(encoding="utf-8").rstrip())
        return CONFORMS
    if args.compare:
        return _compare(args)
    if args.export_junit and args.scenario:
        return _export_findings(args)
    # Before a broker is started, which takes long.
    for place in filter(None, (args.record, args.badge, args.summary, args.junit, args.results, *args.coverage)):
        writable(place)
    progress = silent if args.quiet else aside
    if args.cluster:
        return _cluster(args, progress)
    _refuse_combinations(args)
    build = _build(args)
    if args.baseline and build is not None:
        return _against_baseline(args, build, progress)
    from tidegauge.impl.profiles import SAFE
    from tidegauge.impl.releases import RELEASE, profile_named

    # Without a named profile: the one of the build's release; an adapter's broker is not Kafka, and gets SAFE.
    profile_name = chosen_profile(args)
    expected = profile_named(profile_name or (SAFE.name if build is None else f"{RELEASE}{build.release}"))
    # The note of a build says why it has the profile of that release, where its version names none.
    notes = (build.note,) if build is not None and build.note and not profile_name else ()
    if args.controller and build is not None:
        return _controller(args, build, expected, notes, progress)
    return _one_broker(args, build, expected, notes, progress)


def _one_broker(
    args: argparse.Namespace,
    build: "KafkaBuild | None",
    expected: "Profile",
    notes: Sequence[str],
    progress: Callable[[str], None],
) -> int:
    """Drive one broker through covers of graphs, scenarios and random walks; print and write the results.

    `build` is None for an adapter. `expected` is the profile the broker is expected to have, `notes` are lines of the
    report.
    """
    from tidegauge.drive.broker.reference import reference
    from tidegauge.drive.broker.transcript import BROKER_FORMAT
    from tidegauge.drive.paths import unsafe_or_repaired
    from tidegauge.drive.paths.scenarios import shown_text
    from tidegauge.drive.paths.selection import chosen_paths
    from tidegauge.drive.runner.run import run as drive
    from tidegauge.drive.runner.run import text_of
    from tidegauge.drive.runner.transcript import Recorder, write
    from tidegauge.util.junit import annotations, on_github

    with _broker(args, build) as node:
        progress(f"{node.capabilities.name} speaks the contract")
        # A broker that has repaired a bug of its generation is right: it is compared with that generation repaired. Short
        # paths, played before the others, show which bugs it has repaired.
        repairs = unsafe_or_repaired.ask(node, expected)
        profile = expected.without(repairs.repaired)
        paths = chosen_paths(_choice(args), node.capabilities, profile, progress)
        # A scenario is shown with its reports, which only a recorder keeps.
        recorder = Recorder(paths.cases) if args.record or paths.named else None
        # Only a process of Kafka has a log that the suite knows; an adapter's log is its own.
        log_lines_of = getattr(node, "log_lines", lambda _: ())
        notes = (*notes, *paths.coverage, *unsafe_or_repaired.report_lines(repairs, expected))
        drive_run = drive(node, paths.cases, reference(profile), notes, recorder, progress, log_lines_of)
        recorded = recorder.recorded() if recorder is not None else ()
        if args.record:
            write(Path(args.record), BROKER_FORMAT, node.capabilities, profile.name, recorded)
    reports = dict(recorded)
    # The scenarios that --scenario names, step by step; those of --scenarios only where one differs.
    for scenario in paths.named:
        echo(shown_text(scenario, reports[scenario.case], node.capabilities.name))
    differs_at = {difference.case: difference.at for difference in drive_run.played.differences}
    for name, case in paths.scenarios.items():
        if case in differs_at:
            echo(f"scenario {name} differs after {differs_at[case]} steps")
    echo(text_of(drive_run))
    if args.export_junit and build is not None:
        _export(args.export_junit, drive_run, reference(profile), build)
    if args.coverage or args.results:
        from tidegauge.conformance.report.results import write_results
        from tidegauge.drive.coverage import exercised_by_run, results_of_run

        exercised = exercised_by_run(drive_run.name, paths.cases, differs_at, profile)
        if args.coverage:
            recordings.report_coverage(exercised, args.coverage)
        if args.results:
            write_results(results_of_run(drive_run, exercised, profile, args.target), args.results)
    # In a job of GitHub's, lines that it shows beside the code.
    if on_github():
        for line in annotations(drive_run.name, [failure.text for failure in drive_run.failures]):
            echo(line)
    if args.badge:
        Path(args.badge).write_text(_badge(drive_run), encoding="utf-8")
    return drive_run.exit_code


def _cluster(args: argparse.Namespace, progress: Callable[[str], None]) -> int:
    """Drive a whole partition on brokers of several builds, and an adapter if there is one; print the results.

    They play random walks of their cluster, or the path of a finding (--finding); each gets the others' requests and
    responses.
    """
    from contextlib import ExitStack

    from tidegauge.drive.broker.reference import reference
    from tidegauge.drive.cluster.cluster_findings import finding_path, finding_text, needs_controller
    from tidegauge.drive.cluster.cluster_run import ClusterMember, cluster_text, play_cluster
    from tidegauge.drive.cluster.cluster_walks import cluster_walks
    from tidegauge.drive.controller.node import ControllerNode
    from tidegauge.drive.controller.reference import reference as controller_reference
    from tidegauge.drive.kafka_broker.node import KafkaNode
    from tidegauge.drive.kafka_process.builds import build_of
    from tidegauge.drive.paths import unsafe_or_repaired
    from tidegauge.drive.runner.run import run as drive
    from tidegauge.drive.runner.run import text_of
    from tidegauge.drive.transports.stdio import StdioNode
    from tidegauge.impl.profiles import SAFE
    from tidegauge.impl.releases import RELEASE, profile_named, profiles_named

    _refuse_beside_cluster(args)
    # Before a broker is started: raises for a name that is no finding.
    is_controlled = bool(args.finding) and needs_controller(args.finding)
    # Each build once, by its name on the command line, which may be there several times.
    builds = {name: build_of(name) for name in dict.fromkeys(args.cluster)}
    with ExitStack() as until_done:
        # Brokers of one build share a process: each path is played on a partition of its own there.
        nodes = {name: until_done.enter_context(KafkaNode(build)) for name, build in builds.items()}
        members = [
            ClusterMember(
                nodes[name].capabilities.name,
                nodes[name],
                reference(profile_named(f"{RELEASE}{builds[name].release}")),
                nodes[name].log_lines,
            )
            for name in args.cluster
        ]
        # The adapter is the last broker of the cluster, with the profile that it was given.
        if args.command:
            adapter = until_done.enter_context(StdioNode(args.command, args.timeout))
            expected = profile_named(chosen_profile(args) or SAFE.name)
            repaired = unsafe_or_repaired.ask(adapter, expected).repaired
            members.append(ClusterMember(adapter.capabilities.name, adapter, reference(expected.without(repaired))))
        for note in dict.fromkeys(build.note for build in builds.values() if build.note):
            echo(note)
        # The profile of the controller that these brokers' cluster would have.
        profiles = ",".join(f"{node}={member.reference.profile.name}" for node, member in enumerate(members, 1))
        controller = profiles_named(profiles, range(1, len(members) + 1)).controller
        models = [member.model for member in members]
        # Only a finding that needs a controller drives one.
        controller_run: DriveRun[Any] | None = None
        if args.finding:
            node, opening = None, None
            if is_controlled:
                # The controller is of the first build.
                controller = members[0].reference.profile
                node = until_done.enter_context(ControllerNode(builds[args.cluster[0]]))
                opening = node.opening()
            finding = finding_path(args.finding, models, controller, opening)
            # A finding may need fewer brokers than there are: one case for each.
            run = play_cluster(members[: len(finding.path.cases)], [finding.path], progress)
            # The controller plays its part of the path apart from the brokers.
            if node is not None and finding.control is not None:
                case, model = finding.control, controller_reference(controller)
                # No notes, and no recorder.
                controller_run = drive(node, [case], model, (), None, progress, node.log_lines)
            head = finding_text(run, finding.control_steps)
        else:
            walk_count = args.walks or CLUSTER_WALKS
            run = play_cluster(members, cluster_walks(models, controller, args.seed, walk_count), progress)
            head = f"{walk_count} walks of seed {args.seed}"
    echo(head)
    if controller_run is not None:
        echo(text_of(controller_run))
    echo(cluster_text(run))
    codes = {run.exit_code, run.exit_code if controller_run is None else controller_run.exit_code}
    # A failure outweighs "nothing could be decided", although its code is lower.
    return FAILS if FAILS in codes else max(codes)


def _refuse_beside_cluster(args: argparse.Namespace) -> None:
    """Raise UsageError for options that do not go with --cluster.

    --profile needs an adapter, whose profile it is: a build of Kafka has that of its release.
    """
    besides = ("kafka", "jars", "controller", "smoke", "cover", "graph", "scenarios", "scenario", "record", "badge")
    others = ("baseline", "summary", "junit", "export_junit", "coverage", "results")
    seen = [name for name in (*besides, *others) if getattr(args, name)]
    # The adapter, if there is one, counts as a broker.
    if seen or (chosen_profile(args) and not args.command) or len(args.cluster) + bool(args.command) < 2:
        raise UsageError(
            "drive: expected --cluster with two brokers or more, the adapter behind -- among them, besides --walks, --seed "
            f"and the adapter's --profile; seen {', '.join(seen) or 'another number of brokers, or no adapter'}; "
            "leave that out"
        )


def _choice(args: argparse.Namespace) -> "Choice":
    """Return which paths the options choose for a broker: graphs to cover, walks, scenarios.

    chosen_paths decides what is left out: if nothing is named, all the usual graphs are covered.
    """
    from tidegauge.drive.paths.graphs import ON_THE_WIRE, USUAL
    from tidegauge.drive.paths.selection import Choice

    return Choice(
        graphs=ON_THE_WIRE if args.kafka else USUAL,
        covered=args.graph or (),
        walks=args.walks or 0,
        seed=args.seed,
        smoke=args.smoke,
        scenarios=args.scenarios,
        named=args.scenario or (),
        cover=args.cover,
        # Of Kafka it is known what they tell, or `unsafe_or_repaired.ask` has just played them.
        plays_telling_paths=not args.kafka,
    )


def _against_baseline(args: argparse.Namespace, build: "KafkaBuild", progress: Callable[[str], None]) -> int:
    """Take the build of --baseline and then `build` through the same paths; print where the second differs."""
    from tidegauge.drive.broker.reference import reference
    from tidegauge.drive.broker.transcript import BROKER_FORMAT
    from tidegauge.drive.controller.node import ControllerNode
    from tidegauge.drive.controller.reference import reference as controller_reference
    from tidegauge.drive.controller.transcript import CONTROLLER_FORMAT
    from tidegauge.drive.kafka_broker.node import KafkaNode
    from tidegauge.drive.kafka_process.builds import build_of
    from tidegauge.drive.paths.selection import chosen_paths
    from tidegauge.drive.runner.baseline import changes_from, driven, markdown, write_junit
    from tidegauge.drive.runner.compare import text_of
    from tidegauge.impl.releases import RELEASE, profile_named

    # The paths are made for the generation of the baseline, not for that of the changed build.
    before = build_of(args.baseline)
    profile = profile_named(chosen_profile(args) or f"{RELEASE}{before.release}")
    notes: list[str] = [before.note] if before.note else []
    comparison: Comparison[Any]
    # The same twice, for two kinds of node: `coverage` are lines on what the paths exercise.
    if args.controller:
        controller_model = controller_reference(profile)
        with ControllerNode(before) as node:
            paths, coverage = _controller_paths(args, node, profile)
            progress(f"{node.capabilities.name}: {len(paths):,} paths")
            controller_transcript = driven(node, paths, controller_model, CONTROLLER_FORMAT)
        with ControllerNode(build) as changed:
            progress(f"{changed.capabilities.name}: the same paths")
            comparison = changes_from(controller_transcript, changed, controller_model, progress)
    else:
        with KafkaNode(before) as broker:
            chosen = chosen_paths(_choice(args), broker.capabilities, profile, progress)
            progress(f"{broker.capabilities.name}: {len(chosen.cases):,} paths")
            transcript, coverage = driven(broker, chosen.cases, reference(profile), BROKER_FORMAT), list(chosen.coverage)
        with KafkaNode(build) as other:
            progress(f"{other.capabilities.name}: the same paths")
            comparison = changes_from(transcript, other, reference(profile), progress)
    for line in (*notes, *coverage):
        echo(line)
    echo(text_of(comparison))
    if args.summary:
        Path(args.summary).write_text(markdown(comparison), encoding="utf-8")
    if args.junit:
        write_junit(comparison, Path(args.junit), "tidegauge")
    return comparison.exit_code


def _compare(args: argparse.Namespace) -> int:
    """Compare two recordings, of releases or in transcripts, of brokers or of controllers; print where they differ."""
    from tidegauge.drive.broker.transcript import BROKER_FORMAT
    from tidegauge.drive.controller.transcript import CONTROLLER_FORMAT
    from tidegauge.drive.runner.compare import Comparison, compare, text_of
    from tidegauge.drive.runner.transcript import BROKER, CONTROLLER, place_named, read

    # Nothing is driven, so every option that says what to drive, on which paths, or what to write of it is refused: by its
    # attribute of `args`.
    paths = ("smoke", "cover", "graph", "walks", "scenarios", "scenario")
    written = ("record", "export_junit", "badge", "coverage", "results", "summary", "junit")
    others = ("command", "kafka", "jars", "baseline", *paths, *written)
    seen = [name for name in (*others, "profile", "release") if getattr(args, name)]
    if seen:
        raise UsageError(
            f"drive: expected --compare alone, or with --controller; seen {', '.join(seen)} besides; leave these out"
        )
    # Where recordings of that kind lie, and how their transcripts are read.
    kind, form = (CONTROLLER, CONTROLLER_FORMAT) if args.controller else (BROKER, BROKER_FORMAT)
    comparison: Comparison[Any] = compare(*(read(place_named(name, kind), form) for name in args.compare))
    echo(text_of(comparison))
    return comparison.exit_code


def _export_findings(args: argparse.Namespace) -> int:
    """Write the JUnit tests of findings, for Kafka's tree (--export-junit with --scenario); starts no Kafka."""
    from tidegauge.drive.java_tests.export import finding_test, write
    from tidegauge.drive.paths.unsafe_or_repaired import LATEST

    besides = (
        "command",
        "smoke",
        "cover",
        "graph",
        "walks",
        "scenarios",
        "record",
        "badge",
        "coverage",
        "results",
        "baseline",
    )
    seen = [name for name in (*besides, "profile", "release", "summary", "junit", "jars") if getattr(args, name)]
    if seen:
        raise UsageError(
            f"--export-junit: expected it with --scenario and --kafka RELEASE; seen {', '.join(seen)} besides; leave "
            "these out"
        )
    # The test is written for the classes of a release.
    release = args.kafka or LATEST
    for path in write([finding_test(name, release) for name in args.scenario], Path(args.export_junit)):
        echo(f"wrote {path}")
    return 0


def _export(
    place: str, drive_run: "DriveRun[Any]", reference: "BrokerReference | ControllerReference", build: "KafkaBuild"
) -> None:
    """Write the differences of a run to `place` as JUnit tests for Kafka's tree, and print which of them have no test."""
    from tidegauge.drive.java_tests.export import failure_tests, write

    tests, refused = failure_tests(drive_run.failures, reference, build.version)
    for line in refused:
        echo(f"not exported: {line}")
    for path in write(tests, Path(place)) if tests else ():
        echo(f"wrote {path}")
    if not drive_run.failures:
        echo("--export-junit: no step differs, so there is nothing to export")


def _controller(
    args: argparse.Namespace, build: "KafkaBuild", profile: "Profile", notes: Sequence[str], progress: Callable[[str], None]
) -> int:
    """Drive a KRaft controller through covers of graphs, scenarios of the findings and random walks; print the results.

    `profile` is the one it is expected to have, `notes` are lines of the report.
    """
    from tidegauge.drive.controller.node import ControllerNode
    from tidegauge.drive.controller.reference import reference
    from tidegauge.drive.controller.transcript import CONTROLLER_FORMAT
    from tidegauge.drive.runner.run import run as drive
    from tidegauge.drive.runner.run import text_of
    from tidegauge.drive.runner.transcript import Recorder, write

    with ControllerNode(build) as node:
        opening = node.opening()
        progress(f"{node.capabilities.name} leads, metadata.version {opening.metadata_version}, time is {node.time}")
        # The paths, and lines on what they exercise, which are printed before the result.
        cases, lines = _controller_paths(args, node, profile)
        recorder = Recorder(cases) if args.record else None
        drive_run = drive(node, cases, reference(profile), notes, recorder, progress, node.log_lines)
    if recorder is not None:
        write(Path(args.record), CONTROLLER_FORMAT, node.capabilities, profile.name, recorder.recorded())
    for line in lines:
        echo(line)
    echo(text_of(drive_run))
    if args.export_junit:
        _export(args.export_junit, drive_run, reference(profile), build)
    if args.coverage or args.results:
        from tidegauge.conformance.report.results import write_results
        from tidegauge.drive.coverage import exercised_by_controller, results_of_controller

        differs_at = {difference.case: difference.at for difference in drive_run.played.differences}
        exercised = exercised_by_controller(drive_run.name, cases, differs_at, profile)
        if args.coverage:
            recordings.report_coverage(exercised, args.coverage)
        if args.results:
            write_results(results_of_controller(drive_run, exercised, args.target), args.results)
    if args.badge:
        Path(args.badge).write_text(_badge(drive_run), encoding="utf-8")
    return drive_run.exit_code


def _controller_paths(
    args: argparse.Namespace, node: "ControllerNode", profile: "Profile"
) -> "tuple[tuple[ControllerCase, ...], list[str]]":
    """Return the paths that the options choose for a controller, and lines that say what they exercise and what they do not.

    Without --graph, --cover, --walks and --scenarios that is the usual run: findings, refusals and walks (usual_cases).
    """
    from tidegauge.drive.controller.cover import MODELS, cover_of
    from tidegauge.drive.controller.findings import finding_cases
    from tidegauge.drive.controller.reference import unseen
    from tidegauge.drive.controller.walks import OUT_OF_REACH, refusal_cases, usual_cases, walks

    # `opening` is how the cluster begins on every path: its metadata.version, with ELR or without.
    graphs, opening = args.graph or (MODELS if args.cover else ()), node.opening()
    covers = {name: cover_of(name, profile, opening) for name in graphs}
    # Walks that --walks asks for, or those of the usual run.
    walk_count = args.walks or (0 if args.scenarios or graphs else CONTROLLER_WALKS)
    is_usual = not (args.walks or args.scenarios or graphs)
    if is_usual:
        planned = usual_cases(profile, opening, walk_count=walk_count, seed=args.seed)
    else:
        covered = (case for cover in covers.values() for case in cover.cases)
        # A cover is of its graph alone: the findings' paths join it where --scenarios asks for them.
        findings = () if graphs and not args.scenarios else finding_cases(opening)
        planned = (*covered, *findings, *walks(args.seed, walk_count, profile, opening))
    # Without the paths that need a clock which can be set, if this node has none.
    cases = node.possible(planned)
    lines = [f"{walk_count} walks of seed {args.seed}"] if walk_count else []
    lines += [f"refusals and errors: {len(refusal_cases(opening))} paths"] if is_usual else []
    lines += [f"not seen by this run: {', '.join(methods)}: {why}" for why, methods in OUT_OF_REACH.items()]
    if len(cases) < len(planned):
        lines.append(
            f"{len(planned) - len(cases):,} paths are left out: they need a clock that can be set (`tidegauge doctor`)"
        )
    lines += [
        f"graph {name}: {cover.taken_edges:,} of {cover.steps:,} steps are taken, by {len(cover.cases):,} paths"
        for name, cover in covers.items()
    ]
    # Switches of the profile that show on none of the paths. The paths of a cover are too many to be tried with each.
    blind = [] if graphs else unseen(cases, profile)
    return cases, [*lines, *([f"not seen by this run: {', '.join(blind)}"] if blind else [])]


def _refuse_combinations(args: argparse.Namespace) -> None:
    """Raise UsageError for options that do not go together, before jars are fetched or a broker is started."""
    # An adapter with --kafka is refused later (_broker).
    drives_kafka = bool(args.kafka) and not args.command
    if args.finding:
        raise UsageError("drive: expected --finding with --cluster; seen it alone; add --cluster 4.3.1 4.3.1 4.3.1")
    if args.baseline or args.summary or args.junit:
        besides = [
            name
            for name in ("command", "smoke", "scenario", "record", "export_junit", "badge", "coverage", "results")
            if getattr(args, name)
        ]
        if not args.baseline or not drives_kafka or besides:
            seen = ", ".join(besides) or ("no --baseline" if drives_kafka else "no --kafka")
            raise UsageError(
                "drive: expected --baseline BUILD with --kafka BUILD, and --summary and --junit only with these; seen "
                f"{seen}; add what lacks, and leave out the rest"
            )
    if args.export_junit and not drives_kafka:
        raise UsageError(
            "--export-junit: expected --kafka BUILD, whose classes the tests are for; seen an adapter; add --kafka"
        )
    if args.controller:
        from tidegauge.drive.controller.cover import model_of

        if not drives_kafka or args.smoke or args.scenario:
            raise UsageError(
                "drive: expected --controller with --kafka RELEASE, for a cover, walks and scenarios; seen no --kafka, or "
                "an adapter, --smoke or --scenario; add --kafka and leave the others out"
            )
        for name in args.graph or ():
            model_of(name)  # raises for a name that no graph of a controller has


def _build(args: argparse.Namespace) -> "KafkaBuild | None":
    """Return the build of Kafka that --kafka names, None for an adapter."""
    from tidegauge.drive.kafka_process.builds import build_of

    # Both, or neither, is refused later (_broker).
    if not args.kafka or args.command:
        return None
    return build_of(args.kafka, Path(args.jars) if args.jars else None)


def _broker(args: argparse.Namespace, build: "KafkaBuild | None") -> "KafkaNode | StdioNode":
    """Return the broker to drive, a build of Kafka or an adapter. Raises UsageError unless one of them is given."""
    from tidegauge.drive.kafka_broker.node import KafkaNode
    from tidegauge.drive.transports.stdio import StdioNode

    if bool(args.command) == bool(args.kafka):
        seen = "both" if args.kafka else "neither"
        raise UsageError(
            f"drive: expected --kafka BUILD, or -- and the command that starts an adapter; seen {seen}; give one"
        )
    if build is not None:
        return KafkaNode(build)
    return StdioNode(args.command, args.timeout)


def _badge(drive_run: "DriveRun[Any]") -> str:
    """Return the outcome of a run as JSON for an endpoint badge of shields.io."""
    from tidegauge.util.junit import badge

    return badge(drive_run.exit_code, f"{drive_run.profile}, {drive_run.played.steps:,} steps")
