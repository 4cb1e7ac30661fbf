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

/** For the session in which the key is given. */
const sessionMs = 60_000;

/** Where a join has to begin. `joined`: nowhere, this folder has a key of this coordinator already. */
type JoinStart = "anew" | "goes-on" | "again" | "joined";

/**
 * Throws a UsageError when the folder belongs to another crawler or coordinator, or a crawler runs from it. `again`: a
 * folder that has a key gives it up for a new one, and its identity with it.
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

/** Everything on the disk that the session needs. `neededProxy`: for the settings file, if there is none yet. */
export function prepareHome(
  home: string,
  invitation: Invitation,
  given: {
    readonly start: JoinStart;
    readonly neededProxy: string | null;
    /** For the settings file likewise; null: the defaults. */
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

/** Trades the invitation in the folder for a key. Refused, a folder that joins again is who it was before. */
export async function completeJoin(home: string, log: CrawlerLog): Promise<SessionOutcome> {
  const membership = readMembership(home);
  if (membership === null) throw new UsageError(`${home} has no membership to complete`);
  const member = new Member(home, membership);
  const outcome = await joinInSession({ config: homeSettings(home), member, log, timeoutMs: sessionMs });
  if (outcome.type === "joined") forgetBefore(home);
  if (outcome.type === "refused") takeBack(home);
  return outcome;
}

/** For the owner alone: a proxy may come with a password. */
function writeSettings(home: string, values: Values): void {
  const given = Object.entries(values).filter(([, value]) => value !== null);
  const text = settingsTemplate(Object.fromEntries(given));
  writeFileSync(settingsFile(home), text, { mode: 0o600, flush: true });
}

// A folder that joins anew becomes somebody else: identity, membership and releases are set aside, not thrown away, until the
// coordinator has given the new ones a key. If it refuses them, the crawler is who it was. A crash at any point leaves
// what the next join goes on from.

/**
 * In this order: a membership without its identity is noticed, and taken further. What the dock believes belongs to
 * the membership, too: a new invitation may pin other keys.
 */
const files = [membershipFile, identityFile, releasesFolder];

const aside = (file: string) => `${file}.before`;

function setAside(home: string): void {
  for (const file of files.map((of) => of(home))) {
    if (existsSync(file) && !existsSync(aside(file))) renameSync(file, aside(file));
  }
}

/** A crash came between setting aside and the new membership. */
function isBeingSetAside(home: string): boolean {
  return existsSync(aside(membershipFile(home))) && !existsSync(membershipFile(home));
}

/** False when nothing was set aside. */
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

// Writes a crawler's settings file for the person who looks after the machine. What is given stands there as it is; all else
// stands behind a `#`, ready to be changed.

type Values = Readonly<Record<string, unknown>>;

/** `values`: as in the settings that `crawlerConfig` takes, sections nested. Text that `readSettingsFile` reads. */
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

/** Behind the opening, what a crawler that has not joined needs besides: its coordinator, name, key and folder. */
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
