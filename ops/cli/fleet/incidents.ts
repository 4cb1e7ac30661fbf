/** `nearcrawl fleet incidents`: what crawlers and strangers did that they should not have done. */
import { Command, InvalidArgumentError } from "commander";
import { createIncidentStore } from "#coordinator/overview/incident-store";
import { type IncidentEntry, incidentDays } from "#core/incidents";
import { commandContext } from "../command-context.ts";
import { type DatabaseOptions, withDatabaseOptions } from "../database-options.ts";
import { formatTable, printAnswer } from "../output.ts";
import { printable } from "../printable.ts";
import { readDatabase } from "../read-database.ts";

interface IncidentOptions extends DatabaseOptions {
  readonly name?: string;
  readonly kind?: string;
  readonly since: number;
}

const units = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

export function incidentsCommand(): Command {
  return withDatabaseOptions(new Command("incidents"))
    .description(
      `what was refused and why: by crawler, kind and hour, the latest first (kept for ${incidentDays} days)`,
    )
    .option("--name <name>", "of this crawler only")
    .option("--kind <kind>", "of this kind only, such as bad-signature")
    .option("--since <time>", "so long ago at most: 90m, 24h, 7d", timeBack, 7 * units.d)
    .action(async (options: IncidentOptions) => {
      const incidents = await readDatabase(commandContext(options), async ({ pool }) => {
        const { name, kind } = options;
        return await createIncidentStore(pool).list({
          since: new Date(Date.now() - options.since),
          ...(name === undefined ? {} : { name }),
          ...(kind === undefined ? {} : { kind }),
        });
      });
      printAnswer(options, incidents, incidentsText(incidents));
    });
}

export function incidentsText(incidents: readonly IncidentEntry[]): string {
  if (incidents.length === 0) return "no incidents";
  return formatTable(
    [
      { title: "last (UTC)" },
      { title: "crawler" },
      { title: "kind" },
      { title: "times", align: "right" },
      { title: "from" },
      { title: "what happened" },
    ],
    incidents.map(({ lastAt, crawler, kind, count, remoteAddress, words }) => [
      lastAt.toISOString().slice(0, 16).replace("T", " "),
      crawler ?? "(a stranger)",
      kind,
      String(count),
      printable(remoteAddress ?? "", 60),
      printable(words, 160),
    ]),
  );
}

function timeBack(text: string): number {
  const [, count = "", unit = ""] = /^(\d{1,5})([mhd])$/.exec(text) ?? [];
  const ms = Number(count) * (units[unit as keyof typeof units] ?? 0);
  if (ms > 0) return ms;
  throw new InvalidArgumentError("a time such as 90m, 24h or 7d is expected");
}
