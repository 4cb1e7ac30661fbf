/**
 * `join TOKEN` turns an invitation into a crawler that only needs to be started, with explanations for the
 * administrator. Run again after a crash or failure, it continues where it stopped.
 */

import { existsSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { UsageError } from "#core/errors";
import { type Invitation, parseInvitation } from "#protocol/invitation";
import { type CheckReport, checkMachine, keepCheck } from "../check/machine-check.ts";
import { factsOfThisMachine, freeDiskBytes } from "../check/machine-findings.ts";
import { limitWords, measureLink, type ProposedLimits, proposedLimits } from "../check/proposed-limits.ts";
import { quietLog } from "../core/log.ts";
import { type PartnerContext, type PartnerExitCode, partnerExitCodes } from "../core/partner-context.ts";
import type { SessionOutcome } from "../link/short-session.ts";
import { coordinatorRoute } from "../membership/coordinator-route.ts";
import { settingsFile } from "../membership/home-settings.ts";
import { withRefusalAdvice } from "../membership/refusal-advice.ts";
import { type FetchingConfig, fetchingConfig } from "../settings/config.ts";
import type { CrawlerLimits } from "../settings/limits-config.ts";
import { readSettingsFile } from "../settings/settings-file.ts";
import { reportLines } from "./check-command.ts";
import { completeJoin, joinStart, prepareHome } from "./join.ts";

/** Limits that can be given when joining, as numbers; `none` removes an optional one. */
type NamedLimits = { readonly [Name in keyof ProposedLimits]?: string };

interface JoinOptions extends NamedLimits {
  readonly token: string;
  /** Asks no questions. */
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

// Proposes limits from a measurement and asks for agreement before anything is created.

const limitOptions = ["bytesPerDay", "kilobytesPerSecond", "cpuShare", "memoryBytes", "diskBytes"] as const;

/** Throws a ConfigError for an invalid limit, and a UsageError when the folder already has limits. */
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

/** An invalid number stays text, so that validation names it. */
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

/** Without a terminal, or with questions turned off, the proposed or given limits apply and are printed. */
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

/** Uses the folder's settings if it already has some. */
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

/** Uses the certificate that the invitation pins, since there is no membership yet. */
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

/** Older coordinators without a release key made such invitations. */
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

/** Prints lines to paste that start the crawler with the machine. */
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
