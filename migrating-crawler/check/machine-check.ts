/** Checks everything that a crawler needs from its machine and network. */
import { randomBytes } from "node:crypto";
import { getServers, Resolver } from "node:dns/promises";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { PartnerEnvironment } from "../core/partner-context.ts";
import { hasIpv6Route } from "../net/connector.ts";
import type { CoordinatorRoute } from "../net/coordinator-socket.ts";
import { type CrawlerConfig, fetchingConfig } from "../settings/config.ts";
import { type Finding, fix, note, ok, surveyCoordinator } from "./coordinator-findings.ts";
import { type MachineFacts, machineFindings } from "./machine-findings.ts";

export interface CheckReport {
  readonly at: Date;
  readonly findings: readonly Finding[];
  readonly isUsable: boolean;
  /** True if the coordinator is reachable, so that the other findings do not prevent joining. */
  readonly isConnected: boolean;
  /** URL of the proxy that the coordinator needs although the settings do not name it. Otherwise null. */
  readonly neededProxy: string | null;
}

type CheckedSettings = Pick<CrawlerConfig, "limits" | "resolvers" | "ipv6" | "probeMethods">;

export interface CheckSettings {
  readonly home: string;
  /** Null if there is no settings file. The defaults are checked then. */
  readonly settings: CheckedSettings | null;
  /** Null when the folder belongs to no coordinator. */
  readonly coordinator: { readonly url: string; readonly route: CoordinatorRoute } | null;
  readonly facts: MachineFacts;
  readonly env: PartnerEnvironment;
  readonly now: () => Date;
}

/** Takes several seconds if a server does not answer. */
export async function checkMachine(check: CheckSettings): Promise<CheckReport> {
  const { home, coordinator, facts, env, now } = check;
  const { limits, resolvers, ipv6, probeMethods } = check.settings ?? fetchingConfig({});
  const [survey, ...others] = await Promise.all([
    coordinator === null ? null : surveyCoordinator({ ...coordinator, env, now }),
    resolverFinding(resolvers),
    ipv6Finding(ipv6),
    machineFindings(facts, { home, spoolBytes: limits.spoolBytes, icmp: probeMethods.includes("icmp") }),
  ]);
  const findings = [...(survey?.findings ?? [nobodyToReach(home)]), ...others.flat()];
  return {
    at: now(),
    findings,
    isUsable: findings.every(({ state }) => state !== "fix"),
    isConnected: survey?.findings.some(({ subject }) => subject === "clock") ?? false,
    neededProxy: survey?.neededProxy ?? null,
  };
}

const nobodyToReach = (home: string) =>
  note("coordinator", `not looked for: ${home} belongs to no coordinator yet (join makes it so).`);

/** `wanted` is the setting `ipv6` and `hasRoute` is the result of `hasIpv6Route`. */
export async function ipv6Finding(
  wanted: boolean | null,
  hasRoute: () => Promise<boolean> = hasIpv6Route,
): Promise<Finding> {
  const works = await hasRoute();
  if (works && wanted === false)
    return note(
      "ipv6",
      "there is a route, but ipv6 is false in settings.toml: take the line out to crawl sites over it, too.",
    );
  if (works) return ok("ipv6", "there is a route, so sites are crawled over it, too.");
  if (wanted === true)
    return fix(
      "ipv6",
      "there is no route to the Internet over IPv6: take ipv6 = true out of settings.toml, or ask for one.",
    );
  return ok("ipv6", "not used, and there is no route.");
}

// Checks that the crawler's DNS servers answer honestly, by asking each for a name that does not exist. Some providers and
// firewalls answer with an address, which would send the crawler to their own pages.

const maxServers = 4;

const queryTimeoutMs = 2000;

type Answer = { readonly type: "honest" } | { readonly type: "lies" | "silent"; readonly words: string };

/** `servers` are written as `address:port`. If empty, the system's servers are used. */
export async function resolverFinding(servers: readonly string[]): Promise<Finding> {
  const asked = (servers.length > 0 ? servers : getServers()).slice(0, maxServers);
  if (asked.length === 0) return fix("resolvers", `none is known: ${howToFix}`);
  const answers = await Promise.all(asked.map(ask));
  const wordsOf = (type: "lies" | "silent") =>
    answers.flatMap((answer) => (answer.type === type ? [answer.words] : []));
  const [lies, silent] = [wordsOf("lies"), wordsOf("silent")];
  if (lies.length > 0) return fix("resolvers", `${lies.join("; ")}: ${howToFix}`);
  if (silent.length === asked.length) return fix("resolvers", `${silent.join("; ")}: ${howToFix}`);
  if (silent.length > 0) return note("resolvers", `${silent.join("; ")}; the others answer.`);
  return ok("resolvers", `${asked.join(", ")} ${asked.length === 1 ? "answers" : "answer"}.`);
}

const howToFix =
  "name DNS servers that do their work as resolvers in settings.toml, or ask your network's people to let this machine reach some.";

async function ask(server: string): Promise<Answer> {
  const resolver = new Resolver({ timeout: queryTimeoutMs, tries: 2 });
  try {
    resolver.setServers([server]);
    const addresses = await resolver.resolve4(nameOfNobody());
    return {
      type: "lies",
      words: `${server} says ${addresses.slice(0, 2).join(", ")} for a name that does not exist`,
    };
  } catch (error) {
    const { code = "" } = error as { code?: string };
    if (code === "ENOTFOUND" || code === "ENODATA") return { type: "honest" };
    return { type: "silent", words: `${server} does not answer (${code})` };
  }
}

/** Uses a real top-level domain, because servers that lie are often honest about reserved ones. */
const nameOfNobody = () => `nearcrawl-check-${randomBytes(10).toString("hex")}.com`;

// Saves the result of the last check, so that a start after a failed check repeats it.

const keptCheck = z.object({ at: z.iso.datetime(), isUsable: z.boolean() });

const lastCheckFile = (home: string) => join(home, "last-check.json");

/** A folder that is not writable is already a finding, so a failure to save is ignored. */
export function keepCheck(home: string, { at, isUsable, findings }: CheckReport): void {
  try {
    const kept = { at: at.toISOString(), isUsable, findings };
    // Does not follow a link at this path, because the writer may be root.
    rmSync(lastCheckFile(home), { force: true });
    writeFileSync(lastCheckFile(home), `${JSON.stringify(kept, null, 2)}\n`, { flag: "wx" });
  } catch {
    // The report already says that the folder is not writable.
  }
}

/** Returns false if no check was saved. */
export function lastCheckFailed(home: string): boolean {
  try {
    return !keptCheck.parse(JSON.parse(readFileSync(lastCheckFile(home), "utf8"))).isUsable;
  } catch {
    return false;
  }
}
