/** /storage: the size of each table, its retention, and the expected final size. */
import { z } from "zod";
import { spanWords } from "#core/format";
import {
  column,
  lead,
  member,
  plain,
  present,
  recordColumns,
  section,
  table,
  tiles,
} from "../../ask/document.ts";
import { type Column, type Document, operationsOf } from "../../ask/operation.ts";
import { htmlOf } from "../../ask/words.ts";
import { html } from "../../web/html.ts";
import { storage, storedTable } from "./storage-api.ts";
import { type StorageAnswer, type StoredTable, sizeOf } from "./table-ends.ts";

const { get } = operationsOf<{ readonly read: (now: Date) => Promise<StorageAnswer> }>();

export const storageOperations = {
  storage: get({
    ...{ path: "/api/storage", needs: "read" },
    navigation: { group: "Fleet", order: 61, entry: "Policies", tab: "Storage" },
    alsoFound: "database disk retention",
    summary: "What the database holds: how large each table is, how long its rows are kept",
    description:
      "Needs the scope read where the pages are not open to everybody. Sizes are current; the policies retention.* " +
      "and changes.keepDays set how long rows are kept. Also as CSV: format=csv.",
    input: z.object({}),
    output: storage,
    answer: { description: "The same as its page" },
    command: {
      name: "storage",
      help: `

Expected: once the oldest rows reach their maximum age, at the pace of the last day.

Example:
  nearcrawl policy set retention.fetchDays=14 --why 'disk'`,
    },
    run: async ({ ports, now }) => await ports.read(now),
    view: storageDocument,
  }),
};

function storageDocument({ bytes, expectedBytes, tables, wentBack }: StorageAnswer): Document {
  const rows = tables.filter(({ keptDays }) => keptDays !== null);
  const others = tables.filter(({ keptDays }) => keptDays === null);
  const [name, size] = columns;
  return {
    title: "Storage",
    nodes: present([
      lead(html`What the database holds, and for how long. Running coordinators drop rows that are kept for a time;
the times are the policies <a href="/policies?show=all#retention">Retention</a>.`),
      tiles([
        ["All tables, with their indexes", htmlOf(bytes, { unit: "bytes" })],
        [
          "Expected",
          htmlOf(expectedBytes, { unit: "bytes" }),
          "at the pace of the last day, once the oldest rows reach their age",
        ],
      ]),
      wentBack.length > 0 && wentBackSection(wentBack),
      section("Kept for a time", [table({ label: "Tables whose rows are dropped by age", columns, rows })]),
      section("Kept indefinitely", [
        table<StoredTable>({
          ...{ label: "Tables whose rows are not dropped by age", rows: others },
          columns: [name!, size!, rowsColumn, member("end", "Contents", { kind: "wide" })],
        }),
      ]),
    ]),
    csv: { columns: inCsv, rows: tables },
  };
}

const inCsv = recordColumns<StoredTable>(Object.keys(storedTable.shape) as (keyof StoredTable)[]);

const rowsColumn = column<StoredTable>("", "Rows (estimated)", ({ rows }) => rows, { unit: "count" });

const columns: readonly Column<StoredTable>[] = [
  column("", "Table", ({ table: name }) => html`<code>${name}</code>`),
  column("", "Size", sizeOf, { unit: "bytes" }),
  member("expectedBytes", "Expected", { unit: "bytes" }),
  rowsColumn,
  column("", "Kept", ({ keptDays }) => keptDays && spanWords(keptDays * 86_400), {
    link: ({ policy }) => policy && `/policies?show=all#${policy}`,
    more: ({ policy }) => policy,
  }),
  column("", "Since", ({ since }) => since && new Date(since)),
  member("end", "Dropped and kept", { kind: "wide" }),
];

const wentBackSection = (rows: StorageAnswer["wentBack"]) =>
  section(
    "When the database went back",
    [
      plain(`By a restore, or a failover that lost the last changes.
The journal beside the database restored what people had changed since.`),
      table<StorageAnswer["wentBack"][number]>({
        ...{ label: "Restores and failovers", rows, empty: ["Never.", ""] },
        columns: [
          column("", "When", ({ beganAt }) => new Date(beganAt)),
          member("words", "Noticed by", { kind: "wide" }),
          member("replayed", "Rows restored", { unit: "count", none: "no journal" }),
          column("", "Not restored", notRestored, { kind: "wide" }),
        ],
      }),
    ],
    { id: "went-back" },
  );

const notRestored = ({ failed }: StorageAnswer["wentBack"][number]) =>
  html`${failed.length === 0 && "–"}${failed.map(({ kind, key, words }) => html`<code>${kind}</code> ${key}: ${words}<br>`)}`;
