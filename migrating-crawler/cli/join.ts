/**
 * A machine becomes a crawler of the coordinator that invited it. Each step leaves the folder so that the same
 * command, run again, goes on from there:
 *
 *   nothing → folder → identity → settings → pinned keys → membership with the invitation's secret → membership with a key
 */
import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { stringify } from "smol-toml";
import { UsageError } from "#core/errors";
import type { Invitation } from "#protocol/invitation";
import type { CrawlerLog } from "../core/log.ts";
import {
  isJoining,
  type Membership,
  membershipFile,
  readMembership,
  writeMembership,
} from "../core/membership.ts";
import { joinInSession, type SessionOutcome } from "../link/short-session.ts";
import { makeHome } from "../membership/home-folder.ts";
import { homeSettings, settingsFile } from "../membership/home-settings.ts";
import { identityFile, openIdentity } from "../membership/identity.ts";
import { Member } from "../membership/member.ts";
import { settingName, settingsText, settingTables, tablePath } from "../settings/setting-words.ts";
import { spoolHolder } from "../spool/spool-folder.ts";
import { pinReleaseKeys, releasesFolder } from "../supervisor/release-store.ts";
import { runningDock } from "../supervisor/supervisor-home.ts";

/** The limit for the session that issues the key. */
const sessionMs = 60_000;

/** Where a join starts. `joined` means that the folder already has a key of this coordinator. */
type JoinStart = "anew" | "goes-on" | "again" | "joined";

/**
 * Throws a UsageError when the folder belongs to another crawler or coordinator, or when a crawler runs from it.
 * `again` replaces an existing key and identity.
 */
export function joinStart(home: string, invitation: Invitation, again: boolean): JoinStart {
  const membership = readMembership(home);
  if (membership === null) return isBeingSetAside(home) ? "again" : "anew";
  const { coordinatorUrl, name } = membership;
  if (coordinatorUrl !== invitation.coordinatorUrl || name !== invitation.name) {
    const other = `${invitation.name} of ${invitation.coordinatorUrl}`;
    throw new UsageError(
      `${home} belongs to the crawler ${name} of ${coordinatorUrl} already, and this invitation is for ${other}: name another folder with --home`,
    );
  }
  if (!isJoining(membership) && !again) return "joined";
  const running = runningDock(home) ?? spoolHolder(home);
  if (running === null) return isJoining(membership) ? "goes-on" : "again";
  throw new UsageError(`the crawler of ${home} runs, as process ${running}: stop it first`);
}

/** Writes everything that the session needs. `neededProxy` goes into a new settings file. */
export function prepareHome(
  home: string,
  invitation: Invitation,
  given: {
    readonly start: JoinStart;
    readonly neededProxy: string | null;
    /** Limits for a new settings file; null uses the defaults. */
    readonly limits: Values | null;
  },
): void {
  const { start, neededProxy, limits } = given;
  makeHome(home);
  if (start === "again") setAside(home);
  openIdentity(home);
  if (!existsSync(settingsFile(home))) writeSettings(home, { proxy: neededProxy, limits });
  const { coordinatorUrl, name, certificatePin, releaseKeys, releaseThreshold, secret } = invitation;
  const membership: Membership = {
    coordinatorUrl,
    name,
    certificatePin,
    releaseKeys,
    releaseThreshold,
    key: secret,
    ticket: readMembership(home)?.ticket ?? null,
  };
  pinReleaseKeys(home, membership);
  writeMembership(home, membership);
}

/** Exchanges the invitation for a key. When it is refused, a folder that joins again keeps its old identity. */
export async function completeJoin(home: string, log: CrawlerLog): Promise<SessionOutcome> {
  const membership = readMembership(home);
  if (membership === null) throw new UsageError(`${home} has no membership to complete`);
  const member = new Member(home, membership);
  const outcome = await joinInSession({ config: homeSettings(home), member, log, timeoutMs: sessionMs });
  if (outcome.type === "joined") forgetBefore(home);
  if (outcome.type === "refused") takeBack(home);
  return outcome;
}

/** Only the owner may read the file, because a proxy may have a password. */
function writeSettings(home: string, values: Values): void {
  const given = Object.entries(values).filter(([, value]) => value !== null);
  const text = settingsTemplate(Object.fromEntries(given));
  writeFileSync(settingsFile(home), text, { mode: 0o600, flush: true });
}

// A folder that joins again gets a new identity. Identity, membership and releases are set aside until the coordinator
// has issued the new key, and restored if it refuses. After a crash at any point the next join can continue.

/**
 * The order matters: a membership without an identity is detected and the move completed. The supervisor's trust
 * belongs to the membership, since a new invitation may pin other keys.
 */
const files = [membershipFile, identityFile, releasesFolder];

const aside = (file: string) => `${file}.before`;

function setAside(home: string): void {
  for (const file of files.map((of) => of(home))) {
    if (existsSync(file) && !existsSync(aside(file))) renameSync(file, aside(file));
  }
}

/** A crash happened between setting aside and the new membership. */
function isBeingSetAside(home: string): boolean {
  return existsSync(aside(membershipFile(home))) && !existsSync(membershipFile(home));
}

/** Returns false when nothing was set aside. */
function takeBack(home: string): boolean {
  const before = files.map((of) => of(home)).filter((file) => existsSync(aside(file)));
  for (const file of before.reverse()) {
    if (file === releasesFolder(home)) rmSync(file, { recursive: true, force: true });
    renameSync(aside(file), file);
  }
  return before.length > 0;
}

function forgetBefore(home: string): void {
  for (const file of files) rmSync(aside(file(home)), { recursive: true, force: true });
}

// Writes a settings file for the administrator: given values are active, all others are commented out for editing.

type Values = Readonly<Record<string, unknown>>;

/** `values` are nested like the settings of `crawlerConfig`; `readSettingsFile` can read the result. */
export function settingsTemplate(values: Values): string {
  let table: readonly string[] = [];
  const lines = settingsText.split("\n").map((line) => {
    const path = tablePath(line);
    if (path !== null) {
      table = path;
      return valuesAt(values, path) === null ? line : `[${path.join(".")}]`;
    }
    const name = settingName(line);
    const given = name === null ? null : valuesAt(values, table)?.[name];
    return name === null || given === undefined || given === null ? line : lineOf(name, given);
  });
  return withOthers(lines, values).join("\n");
}

/** After the introduction, adds what an unjoined crawler also needs: coordinator, name, key and folder. */
function withOthers(lines: readonly string[], values: Values): readonly string[] {
  const known = new Set(settingTables.flatMap(({ path, names }) => path[0] ?? names));
  const others = Object.entries(values).filter(([name, value]) => !known.has(name) && value != null);
  const first = lines.indexOf("") + 1;
  return [
    ...lines.slice(0, first),
    ...others.map(([name, value]) => lineOf(name, value)),
    ...(others.length === 0 ? [] : [""]),
    ...lines.slice(first),
  ];
}

function lineOf(name: string, value: unknown): string {
  return stringify({ [name]: value }).trimEnd();
}

function valuesAt(values: Values, path: readonly string[]): Values | null {
  let at: unknown = values;
  for (const step of path) at = (at as Values | null | undefined)?.[step];
  return typeof at === "object" && at !== null ? (at as Values) : null;
}
