/** /storage: how large each table is, how long its rows are kept, and what that comes to; a page, JSON and CSV. */
import { bytesText } from "#core/format";
import type { WebPart } from "../web/actions.ts";
import { column, dataTable, numberColumn, tile } from "../web/components.ts";
import { countText, instant } from "../web/format.ts";
import { type CsvTable, type Html, html } from "../web/html.ts";
import { storageApi } from "./storage-api.ts";
import { type StorageAnswer, type StoredTable, sizeOf } from "./table-ends.ts";

export function storageRoutes(read: (now: Date) => Promise<StorageAnswer>): WebPart {
  return ({ views }) => {
    views.describe({
      ...{ path: "/storage", operation: storageApi.storage },
      view: async ({ now }) => {
        const value = await read(now);
        return {
          status: 200,
          value,
          title: "Storage",
          body: () => storageBody(value),
          csv: () => storageCsv(value),
        };
      },
    });
  };
}

function storageBody({ bytes, expectedBytes, tables, wentBack }: StorageAnswer): Html {
  const aged = tables.filter(({ keptDays }) => keptDays !== null);
  const others = tables.filter(({ keptDays }) => keptDays === null);
  return html`<h1>Storage</h1>
<p class="lead">What the database holds, and for how long. Running coordinators drop rows that are kept for a time;
the times are the policies <a href="/policies?show=all#retention">Retention</a>.</p>
<dl class="tiles">
${tile("All tables, with their indexes", bytesText(bytes))}
${tile("Expected", bytesOr(expectedBytes), "at the pace of the last day, once the oldest rows reach their age")}
</dl>
${wentBack.length === 0 ? "" : wentBackSection(wentBack)}
<section><h2>Kept for a time</h2>
${dataTable<StoredTable>("Tables whose rows are dropped by age", agedColumns, aged)}</section>
<section><h2>Kept indefinitely</h2>
${dataTable<StoredTable>("Tables whose rows are not dropped by age", otherColumns, others)}</section>`;
}

const bytesOr = (bytes: number | null) => (bytes === null ? "–" : bytesText(bytes));

function wentBackSection(times: StorageAnswer["wentBack"]): Html {
  return html`<section id="went-back"><h2>When the database went back</h2>
<p>By a restore, or a failover that lost the last changes.
The journal beside the database restored what people had changed since.</p>
${dataTable<StorageAnswer["wentBack"][number]>(
  "Restores and failovers",
  [
    column("When", ({ beganAt }) => instant(beganAt)),
    column("Noticed by", ({ words }) => words, "wide"),
    numberColumn("Rows restored", ({ replayed }) => (replayed === null ? "no journal" : countText(replayed))),
    column(
      "Not restored",
      ({ failed }) =>
        failed.length === 0
          ? "–"
          : html`${failed.map(({ kind, key, words }) => html`<code>${kind}</code> ${key}: ${words}<br>`)}`,
      "wide",
    ),
  ],
  times,
)}</section>`;
}

const commonColumns = [
  column<StoredTable>("Table", ({ table }) => html`<code>${table}</code>`),
  numberColumn<StoredTable>("Size", (table) => bytesText(sizeOf(table))),
];
const rowsColumn = numberColumn<StoredTable>("Rows (estimated)", ({ rows }) => countText(rows));
const otherColumns = [
  ...commonColumns,
  rowsColumn,
  column<StoredTable>("Contents", ({ end }) => end, "wide"),
];
const agedColumns = [
  ...commonColumns,
  numberColumn<StoredTable>("Expected", ({ expectedBytes }) => bytesOr(expectedBytes)),
  rowsColumn,
  column<StoredTable>("Kept", (table) => {
    const { policy } = table;
    return policy === null
      ? keptText(table)
      : html`<a href="/policies?show=all#${policy}">${keptText(table)}</a>`;
  }),
  column<StoredTable>("Since", ({ since }) => (since === null ? "–" : instant(since))),
  column<StoredTable>("Dropped and kept", ({ end }) => end, "wide"),
];

function keptText({ keptDays }: Pick<StoredTable, "keptDays">): string {
  if (keptDays === null) return "–";
  if (keptDays < 3) return `${Math.round(keptDays * 24)} hours`;
  return `${countText(keptDays)} days`;
}

const columns = [
  ...["table", "rows", "bytes", "indexBytes", "parts", "keptDays", "policy", "end", "since"],
  "expectedBytes",
] as const;

function storageCsv({ tables }: StorageAnswer): CsvTable {
  return {
    columns,
    rows: tables.map((table) => columns.map((column) => table[column as keyof StoredTable])),
  };
}
