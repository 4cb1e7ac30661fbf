/**
 * `join TOKEN` turns an invitation into a crawler that only has to be started, and explains each step to the administrator.
 * After a crash or failure, the same command continues where it stopped.
 */

import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { stringify } from "smol-toml";
import { UsageError } from "#core/errors";
import { type Invitation, parseInvitation } from "#protocol/invitation";
import { type CheckReport, checkMachine, keepCheck } from "../check/machine-check.ts";
import { factsOfThisMachine, freeDiskBytes } from "../check/machine-findings.ts";
import { limitWords, measureLink, type ProposedLimits, proposedLimits } from "../check/proposed-limits.ts";
import { type CrawlerLog, quietLog } from "../core/log.ts";
import {
  isJoining,
  type Membership,
  membershipFile,
  readMembership,
  writeMembership,
} from "../core/membership.ts";
import { type PartnerContext, type PartnerExitCode, partnerExitCodes } from "../core/partner-context.ts";
import { joinInSession, type SessionOutcome } from "../link/short-session.ts";
import { coordinatorRoute, withRefusalAdvice } from "../membership/coordinator-route.ts";
import { homeSettings, makeHome, settingsFile } from "../membership/home-folder.ts";
import { identityFile, openIdentity } from "../membership/identity.ts";
import { Member } from "../membership/member.ts";
import { type FetchingConfig, fetchingConfig } from "../settings/config.ts";
import type { CrawlerLimits } from "../settings/limits-config.ts";
import { settingName, settingsText, settingTables, tablePath } from "../settings/setting-words.ts";
import { readSettingsFile } from "../settings/settings-file.ts";
import { spoolHolder } from "../spool/spool-folder.ts";
import { pinReleaseKeys, releasesFolder } from "../supervisor/release-store.ts";
import { runningSupervisor } from "../supervisor/supervisor-home.ts";
import { reportLines } from "./check-command.ts";

/** Limits that can be given as options of `join`, as numbers. `none` removes an optional limit. */
type NamedLimits = { readonly [Name in keyof ProposedLimits]?: string };

interface JoinOptions extends NamedLimits {
  readonly token: string;
  readonly yes?: boolean;
  /** Replaces the key of a folder that already has one. */
  readonly again?: boolean;
}

export async function joinCommand(context: PartnerContext, options: JoinOptions): Promise<PartnerExitCode> {
  const invitation = parseInvitation(options.token === "-" ? readFileSync(0, "utf8") : options.token);
  const { home, now } = context;
  const start = joinStart(home, invitation, options.again ?? false);
  if (start === "joined") return tellJoined(context, invitation, "before");
  if (now() > new Date(invitation.expiresAt)) return tellExpired(context, invitation);
  if (invitation.releaseKeys.length === 0) return tellUnpinned(context);
  const named = namedLimits(home, options);
  const report = await checkFor(context, invitation);
  if (!(await goesOn(context, report, options))) return partnerExitCodes.failed;
  const limits = existsSync(settingsFile(home))
    ? null
    : await limitsFor(context, { invitation, report, named });
  if (!(await agrees(context, limits, options))) return partnerExitCodes.failed;
  prepareHome(home, invitation, { start, neededProxy: report.neededProxy, limits });
  keepCheck(home, report);
  return tellOutcome(context, invitation, await completeJoin(home, quietLog));
}

const limitOptions = ["bytesPerDay", "kilobytesPerSecond", "cpuShare", "memoryBytes", "diskBytes"] as const;

/** Throws a ConfigError if a limit is invalid, and a UsageError if the folder already has limits. */
function namedLimits(home: string, options: JoinOptions): ProposedLimits {
  const given = limitOptions.flatMap((name) =>
    options[name] === undefined ? [] : [[name, limitIn(options[name])]],
  );
  if (given.length === 0) return {};
  if (existsSync(settingsFile(home)))
    throw new UsageError(`${settingsFile(home)} has this crawler's limits already: change them there`);
  const named = Object.fromEntries(given);
  const { limits } = fetchingConfig({ limits: named });
  return Object.fromEntries(Object.keys(named).map((name) => [name, limits[name as keyof CrawlerLimits]]));
}

/** An invalid number stays text, so that the error message can quote it. */
function limitIn(text: string): unknown {
  if (text === "none") return null;
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : text;
}

async function limitsFor(
  context: PartnerContext,
  joining: { readonly invitation: Invitation; readonly report: CheckReport; readonly named: ProposedLimits },
): Promise<Required<ProposedLimits>> {
  const { invitation, report, named } = joining;
  const settings = fetchingConfig(report.neededProxy === null ? {} : { proxy: report.neededProxy });
  const { url, route } = coordinatorOf(invitation, settings);
  const proposed = proposedLimits({
    linkBytesPerSecond: named.kilobytesPerSecond === undefined ? await measureLink(url, route) : null,
    processors: availableParallelism(),
    memoryBytes: factsOfThisMachine().memoryBytes,
    freeDiskBytes: freeDiskBytes(context.home),
  });
  return { ...proposed, ...named };
}

/** Without a terminal, or when questions are turned off, the proposed or given limits are printed and apply. */
async function agrees(
  context: PartnerContext,
  limits: Required<ProposedLimits> | null,
  { yes }: JoinOptions,
): Promise<boolean> {
  if (limits === null) return true;
  tell(context, "This crawler would take of your machine and network:");
  for (const line of limitWords(limits)) tell(context, `  ${line}`);
  if (yes || context.ask === null || (await context.ask("Join with these limits?"))) return true;
  context.complain(
    "Not joined. Name other limits, and run it again: --kilobytes-per-second, --bytes-per-day, --cpu-share, --memory-bytes, --disk-bytes.",
  );
  return false;
}

async function checkFor(context: PartnerContext, invitation: Invitation): Promise<CheckReport> {
  const { home, env, now } = context;
  const file = settingsFile(home);
  const settings = fetchingConfig(existsSync(file) ? readSettingsFile(file) : {});
  const coordinator = coordinatorOf(invitation, settings);
  tell(context, `Looking at this machine, and whether it reaches ${new URL(coordinator.url).host} …`);
  const report = await checkMachine({ home, settings, coordinator, facts: factsOfThisMachine(), env, now });
  for (const line of reportLines(report.findings)) tell(context, `  ${line}`);
  return report;
}

/** Uses the certificate pinned by the invitation, since there is no membership yet. */
function coordinatorOf({ coordinatorUrl: url, certificatePin }: Invitation, settings: FetchingConfig) {
  return { url, route: { ...coordinatorRoute({ ...settings, coordinatorUrl: url }, null), certificatePin } };
}

async function goesOn(context: PartnerContext, report: CheckReport, { yes }: JoinOptions): Promise<boolean> {
  if (!report.isConnected) {
    context.complain(
      "Not joined: the coordinator is not reached from here. Mend what is marked, and run the same command again.",
    );
    return false;
  }
  if (report.isUsable || yes || context.ask === null) return true;
  return await context.ask("Fix this first, or the crawler will not work well. Join anyway?");
}

function tellOutcome(
  context: PartnerContext,
  invitation: Invitation,
  outcome: SessionOutcome,
): PartnerExitCode {
  switch (outcome.type) {
    case "joined":
      return tellJoined(context, invitation, "now");
    case "refused":
      context.complain(`Not joined: ${withRefusalAdvice(outcome.reason, outcome.code)}`);
      return partnerExitCodes.refused;
    case "failed":
      context.complain(`Not joined: ${outcome.reason}. Run the same command again: it goes on from here.`);
      return partnerExitCodes.failed;
  }
}

function tellExpired(context: PartnerContext, { expiresAt }: Invitation): PartnerExitCode {
  context.complain(
    `Not joined: this invitation ran out at ${expiresAt}. Ask the operator for a new one; if you think it is still good, look at this machine's clock.`,
  );
  return partnerExitCodes.usage;
}

/** Only older coordinators, which had no release key, issued such invitations. */
function tellUnpinned(context: PartnerContext): PartnerExitCode {
  const why = "no release could ever be believed here, and nothing would run";
  context.complain(
    `Not joined: this invitation pins no release key, so ${why}. Ask the operator to make a key (nearcrawl release trust), and for a new invitation.`,
  );
  return partnerExitCodes.usage;
}

function tellJoined(
  context: PartnerContext,
  invitation: Invitation,
  when: "now" | "before",
): PartnerExitCode {
  const { home, program, json, print } = context;
  const { name, coordinatorUrl } = invitation;
  if (json) {
    print(
      JSON.stringify({ joined: when, name, coordinatorUrl, home, settings: settingsFile(home) }, null, 2),
    );
    return partnerExitCodes.done;
  }
  if (when === "before") {
    print(
      `This folder has joined already, as ${name}: nothing was changed. (--again makes it a new member.)`,
    );
  } else for (const line of welcomeLines(context, invitation)) print(line);
  print(`Start it:         ${program} run --home ${home}`);
  for (const line of atBootLines(context)) print(line);
  return partnerExitCodes.done;
}

function atBootLines({ home, program }: PartnerContext): string[] {
  const folder = "~/.config/systemd/user";
  const unit = `${folder}/nearcrawl-crawler.service`;
  const enable = "systemctl --user enable --now nearcrawl-crawler && loginctl enable-linger";
  return [
    `With the machine: mkdir -p ${folder} && ${program} unit --user --home ${home} > ${unit} && ${enable}`,
    `                  (or, as root, under a user of its own: ${program} unit)`,
  ];
}

function welcomeLines({ home, program }: PartnerContext, { name, coordinatorUrl }: Invitation): string[] {
  return [
    `Joined as ${name}.`,
    "",
    `The coordinator at ${new URL(coordinatorUrl).host} now knows this crawler. Once it runs, the coordinator measures how near`,
    "it is to the other crawlers and to web sites, and sends it the sites that are nearest to it. The crawler only",
    "opens connections outward, fetches public web pages, and sends back what a search index needs.",
    "",
    `Your limits:      ${settingsFile(home)} (nobody else can raise them; changes count while it runs)`,
    `Keep this folder: ${home} (its identity and key are in it; back it up, never run two copies)`,
    `Look at it:       ${program} status, ${program} log`,
    `For a while:      ${program} pause, and ${program} resume; or stop it (Ctrl-C, SIGTERM, systemctl stop):`,
    "                  its results are kept, its work waits for it",
    `For good:         ${program} leave, or ${program} uninstall, which removes everything`,
  ];
}

function tell({ json, print }: PartnerContext, line: string): void {
  if (!json) print(line);
}

// Makes this machine a crawler of the coordinator that invited it. When the command is run again after any of these steps, it
// continues from there:
//
//   nothing → folder → identity → settings → pinned keys → membership with the invitation's secret → membership with a key

const sessionMs = 60_000;

/** The step at which a join starts. `joined` means that the folder already has a key of this coordinator. */
type JoinStart = "anew" | "goes-on" | "again" | "joined";

/**
 * Throws a UsageError if the folder belongs to another crawler or coordinator, or if a crawler is running from it. `again`
 * replaces an existing key and identity.
 */
function joinStart(home: string, invitation: Invitation, again: boolean): JoinStart {
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
  const running = runningSupervisor(home) ?? spoolHolder(home);
  if (running === null) return isJoining(membership) ? "goes-on" : "again";
  throw new UsageError(`the crawler of ${home} runs, as process ${running}: stop it first`);
}

/** Writes everything that the session with the coordinator needs. `neededProxy` is saved only in a new settings file. */
function prepareHome(
  home: string,
  invitation: Invitation,
  given: {
    readonly start: JoinStart;
    readonly neededProxy: string | null;
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

/** Exchanges the invitation for a key. If the coordinator refuses, a folder that joins again keeps its old identity. */
async function completeJoin(home: string, log: CrawlerLog): Promise<SessionOutcome> {
  const membership = readMembership(home);
  if (membership === null) throw new UsageError(`${home} has no membership to complete`);
  const member = new Member(home, membership);
  const outcome = await joinInSession({ config: homeSettings(home), member, log, timeoutMs: sessionMs });
  if (outcome.type === "joined") forgetBefore(home);
  if (outcome.type === "refused") takeBack(home);
  return outcome;
}

/** Only the owner may read the file, because it may contain a proxy's password. */
function writeSettings(home: string, values: Values): void {
  const given = Object.entries(values).filter(([, value]) => value !== null);
  const text = settingsTemplate(Object.fromEntries(given));
  writeFileSync(settingsFile(home), text, { mode: 0o600, flush: true });
}

// Gives a folder that joins again a new identity. Its identity, membership and releases are set aside until the coordinator
// has issued the new key, and restored if the coordinator refuses. The next join can continue after a crash at any point.

/**
 * The order matters: if a crash leaves a membership without an identity, the next run detects that and completes the move. The
 * trusted release keys belong to the membership, since a new invitation may pin other keys.
 */
const files = [membershipFile, identityFile, releasesFolder];

const aside = (file: string) => `${file}.before`;

function setAside(home: string): void {
  for (const file of files.map((of) => of(home))) {
    if (existsSync(file) && !existsSync(aside(file))) renameSync(file, aside(file));
  }
}

/** True if a crash happened after the old files were set aside and before the new membership was written. */
function isBeingSetAside(home: string): boolean {
  return existsSync(aside(membershipFile(home))) && !existsSync(membershipFile(home));
}

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

// Writes a settings file for the administrator, in which given values are active and all others are commented out.

type Values = Readonly<Record<string, unknown>>;

/** `values` are nested like the settings of `crawlerConfig`. `readSettingsFile` can read the result. */
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

/** Adds, after the introduction, what only a crawler without a membership needs: coordinator, name, key and folder. */
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
