/** All that a crawler needs of its machine and network, looked at once. */

import type { PartnerEnvironment } from "../cli/partner-commands.ts";
import type { CoordinatorRoute } from "../net/coordinator-socket.ts";
import { type CrawlerConfig, fetchingConfig } from "../settings/config.ts";
import { surveyCoordinator } from "./coordinator-findings.ts";
import { type Finding, note } from "./finding.ts";
import { ipv6Finding } from "./ipv6-finding.ts";
import { type MachineFacts, machineFindings } from "./machine-findings.ts";
import { resolverFinding } from "./resolver-findings.ts";

export interface CheckReport {
  readonly at: Date;
  readonly findings: readonly Finding[];
  /** Nothing is to be mended. */
  readonly isUsable: boolean;
  /** The coordinator was reached: what else is to be mended keeps nobody from joining. */
  readonly isConnected: boolean;
  /** A proxy without which the coordinator is not reached, though the settings do not name it; as a URL. */
  readonly neededProxy: string | null;
}

export type CheckedSettings = Pick<CrawlerConfig, "limits" | "resolvers" | "ipv6" | "probeMethods">;

export interface CheckSettings {
  readonly home: string;
  /** Null: of no settings file yet, so the defaults. */
  readonly settings: CheckedSettings | null;
  /** Null: to no coordinator, since this folder belongs to none. */
  readonly coordinator: { readonly url: string; readonly route: CoordinatorRoute } | null;
  readonly facts: MachineFacts;
  readonly env: PartnerEnvironment;
  readonly now: () => Date;
}

/** Takes some seconds where something does not answer. */
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
    isUsable: findings.every(({ state }) => state !== "mend"),
    isConnected: survey?.findings.some(({ subject }) => subject === "clock") ?? false,
    neededProxy: survey?.neededProxy ?? null,
  };
}

const nobodyToReach = (home: string) =>
  note("coordinator", `not looked for: ${home} belongs to no coordinator yet (join makes it so).`);
