/** `nearcrawl storage`: how large each table is, how long its rows are kept, and what that comes to. */
import { Command } from "commander";
import { knownPolicies } from "#coordinator/settings/change";
import { createPolicyStore } from "#coordinator/settings/settings-store";
import { storageFacts } from "#coordinator/storage/storage-reads";
import { keptText } from "#coordinator/storage/storage-routes";
import { type StorageAnswer, sizeOf, storageAnswer } from "#coordinator/storage/table-ends";
import { bytesText } from "#core/format";
import { commandContext } from "../command-context.ts";
import { formatTable, printAnswer } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

export function storageCommand(): Command {
  return withDatabaseOptions(new Command("storage"))
    .description("what the database holds: sizes, how long rows are kept, and the expected total")
    .addHelpText(
      "after",
      "\nExpected: once the oldest rows reach their maximum age, at the pace of the last day.\n\nExit codes: 0 done, 1 failed, 2 wrong usage.\n\nExamples:\n  nearcrawl storage\n  nearcrawl policy set retention.fetchDays=14 --why 'disk'",
    )
    .action(async (options: DatabaseOptions) => {
      const now = new Date();
      const answer = await readDatabase(commandContext(options), async ({ pool }) => {
        const { settings } = knownPolicies(await createPolicyStore(pool).read());
        return storageAnswer(await storageFacts(pool, now), settings, now);
      });
      printAnswer(options, answer, storageText(answer));
    });
}

export function storageText({ bytes, expectedBytes, tables, wentBack }: StorageAnswer): string {
  const expected = expectedBytes === null ? "" : `, ${bytesText(expectedBytes)} expected`;
  const table = formatTable(
    [
      ...[{ title: "table" }, { title: "takes", align: "right" as const }],
      ...[
        { title: "expected", align: "right" as const },
        { title: "rows (est.)", align: "right" as const },
      ],
      ...[{ title: "kept", align: "right" as const }, { title: "since" }, { title: "dropped and kept" }],
    ],
    tables.map((one) => [
      ...[one.table, bytesText(sizeOf(one))],
      ...[one.expectedBytes === null ? "" : bytesText(one.expectedBytes), one.rows.toLocaleString("en-GB")],
      ...[one.keptDays === null ? "" : keptText(one), one.since?.slice(0, 10) ?? "", one.end],
    ]),
  );
  return `${bytesText(bytes)} in all tables with their indexes${expected}\n\n${[table, ...wentBack.map(wentBackText)].join("\n")}`;
}

function wentBackText({ beganAt, words, replayed, failed }: StorageAnswer["wentBack"][number]): string {
  const back =
    replayed === null
      ? "there was no journal"
      : `${replayed} rows were restored, ${failed.length} could not be`;
  return `went back ${beganAt}: ${words}; ${back}`;
}
