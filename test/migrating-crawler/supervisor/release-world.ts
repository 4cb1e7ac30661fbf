/**
 * The basis of the supervisor's tests: an offline key, a real HTTP server that serves releases like a coordinator (or
 * differently for a test), small bundles with certain behaviours as real child processes, and supervisors on separate
 * homes.
 */
import { createHash, generateKeyPairSync, type KeyObject } from "node:crypto";
import { mkdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { join } from "node:path";
import { lineLog } from "#crawler/core/log";
import { type Membership, writeMembership } from "#crawler/core/membership";
import type { ReleaseState } from "#crawler/core/release-state";
import { PingService } from "#crawler/supervisor/crawler-child";
import { ReleaseSource } from "#crawler/supervisor/release-source";
import { pinnedReleaseKeys, ReleaseShelf } from "#crawler/supervisor/release-store";
import { Supervisor, type Told } from "#crawler/supervisor/supervisor";
import { readSupervisorSettings, type SupervisorTiming } from "#crawler/supervisor/supervisor-home";
import type { Goodbye } from "#protocol/messages";
import type { ReleaseManifest } from "#protocol/release";
import { formatEnvelope, rawPublicKey, signBody } from "#protocol/release-envelope";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { onLoopback } from "../support/loopback.ts";

export const quickTiming: SupervisorTiming = {
  watchMs: 150,
  welcomeMs: 60_000,
  mostWatchedFaults: 3,
  mostWatchedStarts: 6,
  againMs: 3_600_000,
  silenceMs: 60_000,
  stopMs: 10_000,
  backOff: { firstMs: 20, mostMs: 200 },
  pollMs: 60_000,
  emptyPollMs: 60_000,
  retryMs: 20,
  lookMs: 0,
};

/** The behaviour of a bundle after the greeting. */
export type Behaviour =
  | "well"
  | "crashes-at-start"
  | "hangs"
  | "never-welcomed"
  | "crashes-later"
  | "crashes-once"
  | "is-killed-often"
  | "finds-the-disk-full"
  | "crashes-when-told";

/** The bundle behaves well afterwards. */
function untilTheNext(times: number, what: string): string {
  return `const begun = home + "/crawler/begun-" + import.meta.url.slice(-20, -4);
    appendFileSync(begun, "x");
    if (readFileSync(begun, "utf8").length <= ${times}) { ${what} }
    process.send({ type: "healthy" });`;
}

const doings: Readonly<Record<Behaviour, string>> = {
  well: `process.send({ type: "started" }); process.send({ type: "healthy" });`,
  "crashes-at-start": `throw new Error("the new parser cannot be loaded");`,
  hangs: `process.send({ type: "started" }); for (;;);`,
  "never-welcomed": `process.send({ type: "started" });`,
  "crashes-later": `process.send({ type: "healthy" });
    setTimeout(() => { console.error("out of memory, it seems"); process.exit(7); }, 50);`,
  "crashes-once": untilTheNext(1, `throw new Error("a page that nobody had thought of");`),
  "is-killed-often": untilTheNext(4, `process.kill(process.pid, "SIGKILL");`),
  "finds-the-disk-full": untilTheNext(4, `throw new Error("ENOSPC: no space left on device, write");`),
  "crashes-when-told": `process.send({ type: "healthy" });
    setInterval(() => {
      if (!existsSync(home + "/crawler/crash")) return;
      renameSync(home + "/crawler/crash", home + "/crawler/crashed");
      throw new Error("a page that nobody had thought of");
    }, 20);`,
};

/** A child that records its greeting and reports what its home's `offer` file says. */
export function bundleText(version: string, behaviour: Behaviour = "well"): string {
  return `// ${version}
import { appendFileSync, existsSync, readFileSync, renameSync } from "node:fs";
const home = process.argv[2];
const note = (words) => appendFileSync(home + "/crawler/notes", words + "\\n");
process.on("exit", () => note("${version} ended"));
process.on("disconnect", () => process.exit(0));
process.on("message", (message) => {
  if (message.type === "stop") process.exit(0);
  if (message.type !== "dock") return;
  note("${version} started " + JSON.stringify(message));
  ${doings[behaviour]}
  setInterval(() => process.send({ type: "alive" }), 20);
  let offered = "";
  setInterval(() => {
    const offer = existsSync(home + "/offer") ? readFileSync(home + "/offer", "utf8") : "";
    if (offer !== "" && offer !== offered) process.send(JSON.parse(offered = offer));
  }, 20);
});
`;
}

export interface Published {
  readonly digest: string;
  readonly version: string;
  readonly bytes: Buffer;
}

export interface ReleaseWorld {
  readonly key: KeyObject;
  readonly port: number;
  /** Paths and their texts, which tests may replace. */
  readonly files: Map<string, string | Buffer>;
  /** Paths that a test answers itself. */
  readonly handlers: Map<string, RequestListener>;
  /** Signs and serves a bundle with the next number. */
  publish(version: string, text: string, changes?: Partial<ReleaseManifest>, key?: KeyObject): Published;
  /** Offers it to supervisors without a release. */
  offerToAll(release: Published): void;
  revoke(sequence: number, ...releases: Published[]): void;
  newHome(settings?: string): Home;
  close(): Promise<void>;
}

export interface Home {
  readonly path: string;
  readonly membership: Membership;
  notes(): string[];
}

export const newKey = () => generateKeyPairSync("ed25519").privateKey;

export async function startReleaseWorld(): Promise<ReleaseWorld> {
  const scratch = realpathSync(temporaryFolder("nearcrawl-dock-"));
  const key = newKey();
  const files = new Map<string, string | Buffer>([["/releases/keys.json", `{"rotations":[]}`]]);
  const handlers = new Map<string, RequestListener>();
  const server = createServer((request, answer) => {
    const path = request.url ?? "";
    const handler = handlers.get(path);
    if (handler) return handler(request, answer);
    const file = files.get(path);
    answer.writeHead(file === undefined ? 404 : 200).end(file ?? "");
  });
  const { port, close } = await onLoopback(server);
  let sequence = 0;
  let homes = 0;
  const serveCurrent = (manifest: string | undefined) => {
    const parsed = manifest === undefined ? null : JSON.parse(manifest);
    files.set(
      "/releases/current.json",
      JSON.stringify({ manifest: parsed, revocations: null, rotations: [] }),
    );
  };
  serveCurrent(undefined);
  return {
    key,
    port,
    files,
    handlers,
    publish(version, text, changes = {}, signer = key) {
      const bytes = Buffer.from(text);
      sequence += 1;
      const manifest = { ...manifestOf(version, bytes, sequence), ...changes };
      const { digest } = manifest;
      files.set(`/releases/${digest}`, bytes);
      files.set(`/releases/${digest}/manifest.json`, formatEnvelope(signBody("release", manifest, signer)));
      return { digest, version, bytes };
    },
    offerToAll({ digest }) {
      serveCurrent(files.get(`/releases/${digest}/manifest.json`) as string);
    },
    revoke(number, ...releases) {
      const digests = releases.map(({ digest }) => digest);
      const list = {
        product: "nearcrawl-crawler",
        sequence: number,
        createdAt: today(),
        digests,
        reason: "it lies",
      };
      files.set("/releases/revocations.json", formatEnvelope(signBody("revocations", list, key)));
    },
    newHome(settings = "") {
      const path = join(scratch, `home-${++homes}`);
      return makeHome(path, settings, { port, key });
    },
    async close() {
      await close();
      rmSync(scratch, { recursive: true, force: true });
    },
  };
}

export interface RunningSupervisor {
  readonly stop: () => Promise<void>;
  readonly state: () => ReleaseState;
  readonly lines: string[];
  /** Applies to supervisors that start later. */
  readonly timing: { -readonly [Name in keyof SupervisorTiming]: SupervisorTiming[Name] };
}

/** Runs a supervisor in this process with crawlers as real processes. */
export async function startSupervisor(
  home: Home,
  timing: Partial<SupervisorTiming> = {},
  now: () => Date = () => new Date(),
  tell: (goodbye: Goodbye) => Promise<Told> = async () => ({ type: "told" }),
): Promise<RunningSupervisor> {
  const { path, membership } = home;
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  const settings = () => readSupervisorSettings(path, membership);
  const used = { ...quickTiming, ...timing };
  const { coordinatorUrl } = membership;
  const supervisor = new Supervisor({
    home: path,
    pinned: pinnedReleaseKeys(path, membership),
    shelf: new ReleaseShelf({ home: path, warn: write }),
    source: new ReleaseSource({
      coordinatorUrl,
      route: () => settings().route(),
      times: { textMs: 5000, bundleMs: 5000 },
    }),
    settings,
    pings: new PingService(),
    log: lineLog(write, "plain", membership.name),
    onLine: write,
    env: process.env,
    tell,
    onPresence: async () => {},
    timing: used,
    now,
    random: () => 0.5,
  });
  await supervisor.start();
  return { stop: () => supervisor.stop(), state: () => supervisor.state, lines, timing: used };
}

function makeHome(path: string, settings: string, { port, key }: { port: number; key: KeyObject }): Home {
  mkdirSync(join(path, "crawler"), { recursive: true, mode: 0o700 });
  const membership: Membership = {
    coordinatorUrl: `ws://127.0.0.1:${port}/crawler`,
    name: "amber",
    certificatePin: null,
    releaseKeys: [rawPublicKey(key)],
    releaseThreshold: 1,
    key: "the-secret-key-of-amber",
    ticket: null,
  };
  writeMembership(path, membership);
  if (settings !== "") writeSettings(path, settings);
  return { path, membership, notes: () => linesOf(join(path, "crawler/notes")) };
}

function manifestOf(version: string, bytes: Buffer, sequence: number): ReleaseManifest {
  return {
    product: "nearcrawl-crawler",
    version,
    sequence,
    digest: createHash("sha256").update(bytes).digest("hex"),
    bytes: bytes.length,
    builtFrom: null,
    createdAt: today(),
    expiresAt: new Date(Date.now() + 86_400_000).toISOString(),
    oldestDock: "1.0.0",
    protocolVersions: [3],
    notes: "",
  };
}

/** Offers a release as a coordinator does, through the connected crawler. */
export function offer(home: Home, { version, digest }: Published): void {
  writeFileSync(join(home.path, "offer.new"), JSON.stringify({ type: "release", version, digest }));
  renameSync(join(home.path, "offer.new"), join(home.path, "offer"));
}

export function writeSettings(home: string, text: string): void {
  writeFileSync(join(home, "settings.toml"), text);
}

function linesOf(path: string): string[] {
  try {
    return readFileSync(path, "utf8").split("\n").filter(Boolean);
  } catch {
    return [];
  }
}

const today = () => new Date().toISOString();
