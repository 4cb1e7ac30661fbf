/** The answer on the database's content and retention. */
import { z } from "zod";
import { dateTime } from "../../web/api-operation.ts";

export const storedTable = z
  .strictObject({
    table: z.string(),
    rows: z.number().describe("As the database estimates them."),
    bytes: z.number().describe("Without indexes."),
    indexBytes: z.number(),
    parts: z.int().describe("Tables that it consists of."),
    keptDays: z.number().nullable().describe("Days after which rows are dropped; null: not dropped by age."),
    policy: z.string().nullable().describe("The policy that sets this; null: fixed."),
    end: z.string().describe("What is dropped and what stays, or what the number of its rows depends on."),
    since: dateTime().nullable().describe("Of the oldest row; null: no rows, or rows without age."),
    expectedBytes: z
      .number()
      .nullable()
      .describe(
        "With indexes, when the oldest row is as old as it may be, at the pace of the last day; null: that cannot be told.",
      ),
  })
  .meta({ id: "StoredTable" });

const wentBack = z
  .strictObject({
    epoch: z.int().describe("Counts the database's epochs."),
    beganAt: dateTime(),
    words: z.string().describe("How it was noticed."),
    replayed: z
      .int()
      .nullable()
      .describe(
        "Rows restored from the journal: opt-outs, revocations, crawlers, audit; null: there was no journal.",
      ),
    failed: z
      .array(z.strictObject({ kind: z.string(), key: z.string(), words: z.string() }))
      .describe("What could not be restored, and why."),
  })
  .meta({ id: "WentBack" });

export const storage = z
  .strictObject({
    now: dateTime(),
    bytes: z.number().describe("Of all tables with their indexes."),
    expectedBytes: z
      .number()
      .nullable()
      .describe("Once all tables whose rows are dropped by age are full, the others as they are now."),
    tables: z.array(storedTable).describe("The largest first."),
    wentBack: z
      .array(wentBack)
      .describe(
        "When the database went back to an earlier state, by a restore or a failover; the latest first.",
      ),
  })
  .meta({ id: "Storage" });
