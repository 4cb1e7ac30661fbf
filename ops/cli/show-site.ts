/** `nearcrawl site HOST`: one host, a part at a time. */
import type { Command } from "commander";
import { readCoordinatorPlace } from "#coordinator/crawlers/coordinator-presence-store";
import { knownPolicies } from "#coordinator/settings/change";
import { createPolicyStore } from "#coordinator/settings/settings-store";
import { answerSite, readAsked } from "#coordinator/sites/site";
import { siteParts, urlFilters } from "#coordinator/sites/site-api";
import { sitePorts } from "#coordinator/sites/start";
import { UsageError } from "#core/errors";
import { createNameResolver } from "#core/name-resolver";
import { timeRange } from "#core/time-range";
import { commandContext } from "./command-context.ts";
import { exitCodes } from "./exit-codes.ts";
import { printAnswer } from "./output.ts";
import { type DatabaseOptions, readDatabase } from "./read-database.ts";
import { siteText } from "./site-text.ts";

export interface SiteOptions extends DatabaseOptions {
  readonly part?: string;
  readonly filter?: string;
  readonly outcome?: string;
  readonly status?: string;
  readonly days?: string;
  readonly kind?: string;
  readonly after?: string;
  readonly range?: string;
}

export function withSiteOptions(command: Command): Command {
  return command
    .option("--part <name>", `of one host: ${siteParts.join(", ")}`)
    .option("--filter <state>", `of its pages: ${urlFilters.join(", ")}`)
    .option("--outcome <name>", "of its pages: with this last outcome, such as http-error")
    .option("--status <code>", "of its pages: with this last status")
    .option("--days <n>", "of its changes: of the last 1, 7 or 30 days")
    .option("--kind <kind>", "of its changes: of this kind alone")
    .option("--range <span>", "of its failures and speed: 1h, 6h, 24h, 7d, 30d, 90d or 1y")
    .option("--after <cursor>", "go on where the answer before ended");
}

export async function showSite(host: string, options: SiteOptions): Promise<void> {
  const now = new Date();
  const typed = (name: string) => (options as Readonly<Record<string, string | undefined>>)[name] ?? "";
  const range = timeRange(
    (name) => (name === "range" ? typed(name) : ""),
    now,
    typed("part") === "speed" ? "30d" : "7d",
  );
  if (range.said !== null) throw new UsageError(`--range: ${range.said}`);
  const asked = readAsked(typed, { host, range });
  if (typeof asked === "string") throw new UsageError(asked);
  const context = commandContext(options);
  const resolver = createNameResolver({ servers: context.currentRun?.resolvers ?? [] });
  const answer = await readDatabase(context, async ({ pool }) => {
    const { scope } = knownPolicies(await createPolicyStore(pool).read()).settings;
    const domainSets = (await readCoordinatorPlace(pool))?.domainSets ?? [];
    return await answerSite(asked, sitePorts({ pool, resolver, scope, domainSets }), now);
  });
  printAnswer(options, answer, siteText(answer));
  if (!answer.found) process.exitCode = exitCodes.notFound;
}
