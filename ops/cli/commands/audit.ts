/** `nearcrawl audit`: every change of what the system does, by whom, and what was before. */
import { Command } from "commander";
import { auditLimit, readAuditQuery } from "#coordinator/access/audit-routes";
import { createAuditLog } from "#coordinator/database/audit-log";
import { type AuditEntry, changedFields } from "#core/audit";
import { boundedInteger } from "../bounded-number.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { formatTable, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

interface AuditOptions extends DatabaseOptions {
  readonly actor?: string;
  readonly action?: string;
  readonly target?: string;
  readonly since?: string;
  readonly until?: string;
  readonly before?: number;
  readonly limit: number;
}

export function auditCommand(): Command {
  return withDatabaseOptions(new Command("audit"))
    .description("every change, who made it and how, the latest first")
    .option("--actor <name>", 'actor: anna, "token ci", "root on db1", coordinator')
    .option("--action <name>", "action, such as crawler-drained")
    .option("--target <name>", "target: a crawler, token, release …")
    .option("--since <day>", "from this day on (UTC, 2026-03-01)")
    .option("--until <day>", "through this day (UTC)")
    .option(
      "--before <number>",
      "only entries before the one with this number",
      boundedInteger(1, Number.MAX_SAFE_INTEGER),
    )
    .option("--limit <n>", "how many", boundedInteger(1, auditLimit.most), auditLimit.usual)
    .addHelpText(
      "after",
      "\nThe web page: /audit. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no entries match.\n\nExamples:\n  nearcrawl audit\n  nearcrawl audit --target athens\n  nearcrawl audit --actor coordinator --since 2026-03-01 --json",
    )
    .action(async (options: AuditOptions) => await audit(options));
}

async function audit(options: AuditOptions): Promise<void> {
  const { actor = "", action = "", target = "", since = "", until = "", before, limit } = options;
  const asked = { actor, action, target, since, until, beforeId: String(before ?? ""), limit: String(limit) };
  const query = readAuditQuery(asked);
  const found = await readDatabase(
    commandContext(options),
    async ({ pool }) => await createAuditLog(pool).list(query),
  );
  printAnswer(options, found, auditText(found));
  if (found.entries.length === 0) process.exitCode = exitCodes.notFound;
}

export function auditText({
  entries,
  more,
}: {
  readonly entries: readonly AuditEntry[];
  readonly more: boolean;
}): string {
  if (entries.length === 0) return "no entries match";
  const table = formatTable(
    [
      { title: "when (UTC)" },
      { title: "actor" },
      { title: "via" },
      { title: "action" },
      { title: "target" },
      { title: "description" },
    ],
    entries.map((entry) => [
      entry.at.toISOString().slice(0, 19).replace("T", " "),
      printable(entry.actor, 40),
      entry.via,
      printable(entry.action, 40),
      printable(entry.target ?? "everything", 40),
      printable(`${entry.words}${changesText(entry)}`, 300),
    ]),
  );
  const last = entries.at(-1);
  return more && last ? `${table}\nearlier ones: --before ${last.entryId}` : table;
}

function changesText({ before, after }: AuditEntry): string {
  const fields = changedFields(before, after).filter((one) => one.before !== null && one.after !== null);
  if (fields.length === 0) return "";
  return ` (${fields.map((one) => `${one.field || "value"}: ${one.before} → ${one.after}`).join("; ")})`;
}
