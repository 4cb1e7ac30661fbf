/**
 * OpenSearch itself, on loopback: one node, or some that form a cluster. Its jars come from Maven once and stay in
 * `node_modules/.cache`. Without Java or Maven, or where the jars cannot be fetched, its tests are skipped aloud.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../support/free-port.ts";
import { folderOfRun } from "../support/once-in-run.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";

const sources = join(import.meta.dirname, "opensearch");
const program = join(sources, "EngineNode.java");
const cache = join(import.meta.dirname, "../../node_modules/.cache/nearcrawl-opensearch");

/** The time limit for fetching the jars when none are cached, which usually takes about ten seconds. */
const fetchWithinMs = 180_000;
const startWithinMs = 90_000;

/** Returns the folder with its classes; null, said on standard error, if they cannot be had here. */
export function openSearchClasses(): string | null {
  const digest = createHash("sha256");
  for (const file of ["pom.xml", "EngineNode.java"]) digest.update(readFileSync(join(sources, file)));
  const folder = join(cache, digest.digest("hex").slice(0, 16));
  if (existsSync(folder)) return folder;
  mkdirSync(cache, { recursive: true });
  const made = mkdtempSync(`${folder}-`);
  try {
    // Maven writes a folder `target` beside its project only for goals other than these.
    const goals = ["dependency:copy-dependencies", `-DoutputDirectory=${made}`];
    run("mvn", ["-q", "-B", "-f", join(sources, "pom.xml"), ...goals]);
    run("javac", ["-d", made, "-cp", join(made, "*"), program]);
    renameSync(made, folder);
  } catch (error) {
    rmSync(made, { recursive: true, force: true });
    // Another process may have been first.
    if (existsSync(folder)) return folder;
    process.stderr.write(
      `skipped: tests with OpenSearch, which need Java 17 and Maven: ${(error as Error).message.slice(0, 300)}\n`,
    );
    return null;
  }
  return folder;
}

function run(command: string, args: readonly string[]): void {
  execFileSync(command, args, { timeout: fetchWithinMs, stdio: ["ignore", "pipe", "pipe"] });
}

export class EngineNode {
  readonly url: string;
  readonly #classes: string;
  readonly #settings: readonly string[];
  #child: ChildProcess | null = null;
  #said = "";

  constructor(classes: string, settings: Readonly<Record<string, string | number>>) {
    this.url = `http://127.0.0.1:${settings["http.port"]}`;
    this.#classes = classes;
    this.#settings = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
  }

  /** Also starts it again, with the data that it has. */
  async start(): Promise<void> {
    const classPath = `${this.#classes}:${join(this.#classes, "*")}`;
    // Half of the time to start would be spent on optimising.
    const bounds = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];
    const child = spawn("java", [...bounds, "-cp", classPath, "EngineNode", ...this.#settings]);
    this.#child = child;
    this.#said = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (text) => {
        this.#said = (this.#said + String(text)).slice(-4000);
      });
    await until(async () => {
      if (child.exitCode !== null) throw new Error(`OpenSearch ended with ${child.exitCode}: ${this.#said}`);
      const answer = await fetch(`${this.url}/_cluster/health?timeout=5s`).catch(() => null);
      return answer?.ok ?? false;
    }, startWithinMs);
  }

  async stop(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
    const child = this.#child;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }

  get pid(): number {
    return this.#child!.pid!;
  }
}

let shared: ReturnType<typeof startOpenSearch> | null = null;

/** One node for all files of a process, which each use indices of their own. It ends with the process. */
export async function sharedOpenSearch(classes: string): Promise<string> {
  shared ??= startOpenSearch(classes, 1, folderOfRun(`opensearch-${process.pid}`));
  return (await shared).url;
}

/** They need `classes` of openSearchClasses(). */
export async function startOpenSearch(
  classes: string,
  count = 1,
  folder = temporaryFolder("nearcrawl-opensearch-"),
) {
  const names = Array.from({ length: count }, (_, at) => `node-${at + 1}`);
  const ports = await Promise.all(names.map(async () => [await freePort(), await freePort()] as const));
  const discovery =
    count === 1
      ? { "discovery.type": "single-node" }
      : {
          "discovery.seed_hosts": ports.map(([, transport]) => `127.0.0.1:${transport}`).join(),
          "cluster.initial_cluster_manager_nodes": names.join(),
        };
  const nodes = names.map(
    (name, at) =>
      new EngineNode(classes, {
        ...{ "cluster.name": "nearcrawl-test", "node.name": name, "network.host": "127.0.0.1" },
        ...{ "http.port": ports[at]![0], "transport.port": ports[at]![1] },
        ...{ "path.home": join(folder, name), "path.data": join(folder, name, "data") },
        ...{
          "path.repo": join(folder, "snapshots"),
          "cluster.routing.allocation.disk.threshold_enabled": "false",
        },
        ...discovery,
      }),
  );
  await Promise.all(nodes.map(async (node) => await node.start()));
  return {
    ...{ nodes, url: nodes[0]!.url },
    close: async () => void (await Promise.all(nodes.map(async (node) => await node.stop("SIGKILL")))),
  };
}

/** Asks the engine itself; for what a test makes or looks up there. */
export async function askEngine<T = unknown>(
  url: string,
  { method = "GET", body }: { readonly method?: string; readonly body?: unknown } = {},
): Promise<T> {
  const headers = { "content-type": "application/json" };
  const text = body === undefined ? null : JSON.stringify(body);
  for (let tries = 1; ; tries += 1) {
    const answer = await fetch(url, { method, headers, body: text });
    if (answer.ok) return (await answer.json()) as T;
    // An index that was just made refuses for a moment.
    if (answer.status !== 503 || tries === 20)
      throw new Error(`${method} ${url}: ${answer.status} ${await answer.text()}`);
    await delay(100);
  }
}

type Source = Record<string, unknown>;

/** The documents of pages, by id: all but the export's cursor. None if there is no such index. */
export async function documentsOf(index: string): Promise<Map<string, Source>> {
  await askEngine(`${index}/_refresh?ignore_unavailable=true`, { method: "POST" });
  const body = { size: 10_000, query: { exists: { field: "url" } } };
  const { hits } = await askEngine<{ hits: { hits: { _id: string; _source: Source }[] } }>(
    `${index}/_search?ignore_unavailable=true`,
    { method: "POST", body },
  );
  return new Map(hits.hits.map(({ _id, _source }) => [_id, _source]));
}
