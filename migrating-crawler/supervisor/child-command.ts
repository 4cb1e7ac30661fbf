/**
 * How the dock starts a crawler: Node's permission model lets it read its own bundle and its home, write its own
 * files there, and start threads, but no process and no native code; the environment has nothing of the dock's but
 * the few names below. The model is a belt against mistakes, not a wall against hostile code (Node's own words): what
 * may run at all is decided by signatures, and what it can reach by the user, unit or container that the dock runs in.
 */
import { ConfigError } from "#core/errors";

export interface ChildPlace {
  readonly bundle: string;
  /** Real path, as those below: links are not followed out of it. */
  readonly home: string;
  /** Files and folders besides that may be read: certificates, what the host says of its load and battery. */
  readonly readable: readonly string[];
  /** Folders besides that may be written (and read): of WARC files. */
  readonly writable: readonly string[];
}

export interface ChildCommand {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/**
 * What the crawler writes in its home, by how the names begin: a file's draft lies beside it (`status.json.new`).
 * All else there it may only read: what the dock goes by (releases/, settings.toml, dock.pid) and its log.
 * `crawler` is a folder that is free for what later releases want to keep; a dock is older than they are.
 */
const written = [
  ...["spool", "moving", "crawler", "control.sock"],
  ...["membership.json", "identity.json", "moved.json"],
  ...[
    "day-count.json",
    "host-paces.json",
    "robots-rules.json",
    "status.json",
    "paused.json",
    "draining.json",
  ],
] as const;

/** Neither secret nor of any power; the time zone is what the hours of a partner's schedule are in. */
const passedOn = ["TZ", "LANG", "LC_ALL", "NODE_EXTRA_CA_CERTS"] as const;

/** `nodeFlags`: what this Node knows, `process.allowedNodeEnvironmentFlags`. Throws a ConfigError for a path that cannot be stated. */
export function childCommand(
  place: ChildPlace,
  { env, nodeFlags }: { readonly env: NodeJS.ProcessEnv; readonly nodeFlags: ReadonlySet<string> },
): ChildCommand {
  const { bundle, home, readable, writable } = place;
  const own = written.map((name) => `${asFolder(home)}${name}`);
  const folders = disjoint(writable.map(asFolder)).filter(
    (path) => !own.some((name) => path.startsWith(name)),
  );
  const args = [
    "--no-warnings",
    ...permissionFlags(nodeFlags),
    ...disjoint([bundle, asFolder(home), ...folders, ...readable]).map(
      (path) => `--allow-fs-read=${statable(path)}`,
    ),
    ...own.map((name) => `--allow-fs-write=${statable(name)}*`),
    ...folders.map((path) => `--allow-fs-write=${statable(path)}`),
    bundle,
    home,
    "--dock",
  ];
  const kept = passedOn.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]));
  return { args, env: Object.fromEntries(kept) };
}

/** Node 20: experimental; from 22.13 on: stable; from 25 on the network is a permission, too. */
function permissionFlags(nodeFlags: ReadonlySet<string>): string[] {
  const model = nodeFlags.has("--permission") ? "--permission" : "--experimental-permission";
  return [model, "--allow-worker", ...(nodeFlags.has("--allow-net") ? ["--allow-net"] : [])];
}

/** With the slash at its end, it means everything below. */
const asFolder = (path: string) => (path.endsWith("/") ? path : `${path}/`);

/** Node (20 to 26) errs when one of the paths lies below another: what is stated would be denied then. */
function disjoint(paths: readonly string[]): string[] {
  const all = [...new Set(paths)];
  return all.filter((path) => !all.some((other) => other !== path && path.startsWith(asFolder(other))));
}

/** Node 20 splits the list at commas, and all versions read `*` as anything. */
function statable(path: string): string {
  if (!/[,*]/.test(path)) return path;
  throw new ConfigError([`${path}: a path with "," or "*" cannot be given to the crawler; choose another`]);
}
