/** `nearcrawl doctor`: whether everything that a coordinator needs is there, and the remedy for everything missing. */
import { existsSync } from "node:fs";
import { Command } from "commander";
import { type CoordinatorConfig, readCoordinatorConfig } from "#coordinator/config";
import { DatabaseWatch } from "#coordinator/database/database-watch";
import { knownPolicies, policiesOf } from "#coordinator/run/settings/change";
import type { PolicySettings } from "#coordinator/run/settings/schema";
import { createPolicyStore } from "#coordinator/run/settings/settings-store";
import { ConfigError } from "#core/errors";
import { isRunning as isProcessRunning } from "#core/running-process";
import { type Finding, fix, ok } from "#crawler/check/coordinator-findings";
import { reportLines } from "#crawler/cli/check-command";
import { embeddedFault } from "#db/embedded-cluster";
import { runningServerUrl } from "#db/embedded-postgres";
import { type Database, withSearchPath } from "#db/server-database";
import { type CommandContext, commandContext, withDatabase } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { printAnswer } from "../output.ts";
import { type DatabaseOptions, withDatabaseOptions } from "../read-database.ts";
import { readCoordinatorSettings, withPlaces } from "../setup/coordinator-settings.ts";
import {
  contactFindings,
  crawlFindings,
  databaseFindings,
  folderFindings,
  listenFindings,
  nodeFinding,
  publicUrlFindings,
  resolverFinding,
  searchFindings,
  serversFindings,
  tlsFindings,
} from "../setup/doctor-checks.ts";

interface DoctorOptions extends DatabaseOptions {
  readonly config?: string;
}

export function doctorCommand(): Command {
  return withDatabaseOptions(new Command("doctor"))
    .description(
      "check what a coordinator needs, from DNS and TLS to disk, clock and Postgres, and say what to do",
    )
    .option("--config <file>", "the coordinator's settings (default: coordinator.toml in the home folder)")
    .addHelpText(
      "after",
      `
ok: as it should be. note: it works, and this is worth knowing. fix: a coordinator cannot work until this is done.
Changes nothing. Run it as the coordinator's user: sudo -u nearcrawl nearcrawl doctor --home /var/lib/nearcrawl
Exit codes: 0 nothing to fix, 2 wrong usage, 4 something must be fixed.`,
    )
    .action(async (options: DoctorOptions) => await doctor(options));
}

async function doctor(options: DoctorOptions): Promise<void> {
  const findings = await examine(options);
  const isUsable = findings.every(({ state }) => state !== "fix");
  printAnswer(options, { isUsable, findings }, reportLines(findings).join("\n"));
  if (!isUsable) process.exitCode = exitCodes.alerts;
}

async function examine(options: DoctorOptions): Promise<Finding[]> {
  const findings: Finding[] = [nodeFinding(process.version)];
  try {
    const context = commandContext(options);
    const { settingsFile: file } = context;
    const config = withPlaces(file, () => readCoordinatorConfig(readCoordinatorSettings(file)));
    findings.push(
      ok("settings", file ?? "no file: every setting has its default (nearcrawl init writes one)."),
    );
    findings.push(...(await examineWith(config, context)));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    findings.push(...error.faults.map((fault) => fix("settings", `${fault}.`)));
  }
  return findings;
}

async function examineWith(config: CoordinatorConfig, context: CommandContext): Promise<Finding[]> {
  const isRunning = context.currentRun !== null && isProcessRunning(context.currentRun.pid);
  const now = () => new Date();
  const [contact, dns, ports, address] = await Promise.all([
    contactFindings(config),
    resolverFinding(config),
    listenFindings(config, isRunning),
    publicUrlFindings(config, { isRunning, now }),
  ]);
  const folder = folderFindings(context.home);
  const tls = tlsFindings(config, now());
  const own = [...folder, ...contact, dns, ...tls, ...ports, ...address];
  const found = await database(context, now, policiesOf(config));
  const search = await searchFindings(config.search, context);
  return [...own, ...crawlFindings(found.policies), ...found.findings, ...search];
}

interface LookedAt {
  readonly findings: readonly Finding[];
  /** The file's policies with the changes made since. */
  readonly policies: PolicySettings;
}

/** An embedded database is checked only if it exists. It is never created. */
async function database(
  context: CommandContext,
  now: () => Date,
  policies: PolicySettings,
): Promise<LookedAt> {
  const isEmbedded = context.databaseUrl === null;
  const alone = (finding: Finding): LookedAt => ({ findings: [finding], policies });
  const fault = isEmbedded ? embeddedFault(context.home) : null;
  if (fault !== null) return alone(fix("postgres", fault));
  if (isEmbedded && !existsSync(`${context.home}/postgres`))
    return alone(ok("postgres", "an embedded one, which the coordinator makes as it starts first."));
  const silence = await silenceOf(context);
  if (silence !== null) return alone(fix("postgres", silence));
  const servers: Finding[] = [];
  try {
    if (context.databaseUrl !== null) servers.push(...(await serversFindings(context.databaseUrl)));
    const look = async ({ pool, schema }: Database): Promise<LookedAt> => {
      const findings = await databaseFindings({ pool, schema, isEmbedded, now });
      const isReadable = findings.every(({ subject }) => subject !== "schema");
      const stored = isReadable ? await createPolicyStore(pool).read() : null;
      return {
        findings: [...servers, ...findings],
        policies: stored === null ? policies : knownPolicies(stored, policies).settings,
      };
    };
    return await withDatabase(context, look, { anySchema: true });
  } catch (error) {
    const words = `${(error as Error).message}: is the server up, and databaseUrl right?`;
    return { findings: [...servers, fix("postgres", words)], policies };
  }
}

/** Why the database does not answer within a second. Null when it answers, or when opening it would start it. */
async function silenceOf({ databaseUrl, home, schema }: CommandContext): Promise<string | null> {
  const url = databaseUrl ?? runningServerUrl(home);
  if (url === null) return null;
  const watch = new DatabaseWatch(withSearchPath(url, schema), {
    now: () => new Date(),
    nowMs: () => performance.now(),
    connectMs: 900,
  });
  const { silent } = await watch.look();
  // The close is not awaited, because a hanging server never confirms it.
  void watch.close();
  return silent === null
    ? null
    : `${silent.words}: is the server up, and databaseUrl right? A process that was stopped (T in ps) goes on with kill -CONT.`;
}
