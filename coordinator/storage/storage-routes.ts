/** /storage: how large each table is, how long its rows are kept, and what that comes to; a page, JSON and CSV. */
import { bytesText } from "#core/format";
import type { WebPart } from "../web/actions.ts";
import { tile } from "../web/components.ts";
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
<p class="lead">What the database holds, and for how long. Running coordinators drop rows that are kept for a time; the times are the policies <a href="/policies?show=all#retention">Retention</a>.</p>
<dl class="tiles">
${tile("All tables, with their indexes", bytesText(bytes))}
${tile("Expected", expectedBytes === null ? "–" : bytesText(expectedBytes), "at the pace of the last day, once the oldest rows reach their age")}
</dl>
${wentBack.length === 0 ? "" : wentBackSection(wentBack)}
<section><h2>Kept for a time</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Tables whose rows are dropped by age"><table>
<thead><tr><th scope="col">Table</th><th scope="col" class="number">Size</th><th scope="col" class="number">Expected</th><th scope="col" class="number">Rows (estimated)</th><th scope="col">Kept</th><th scope="col">Since</th><th scope="col">Dropped and kept</th></tr></thead>
<tbody>${aged.map(agedRow)}</tbody></table></div></section>
<section><h2>Kept indefinitely</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Tables whose rows are not dropped by age"><table>
<thead><tr><th scope="col">Table</th><th scope="col" class="number">Size</th><th scope="col" class="number">Rows (estimated)</th><th scope="col">Contents</th></tr></thead>
<tbody>${others.map(otherRow)}</tbody></table></div></section>`;
}

function wentBackSection(times: StorageAnswer["wentBack"]): Html {
  return html`<section id="went-back"><h2>When the database went back</h2>
<p>By a restore, or a failover that lost the last changes. The journal beside the database restored what people had changed since.</p>
<div class="scroll" tabindex="0" role="region" aria-label="Restores and failovers"><table>
<thead><tr><th scope="col">When</th><th scope="col">Noticed by</th><th scope="col" class="number">Rows restored</th><th scope="col">Not restored</th></tr></thead>
<tbody>${times.map(wentBackRow)}</tbody></table></div></section>`;
}

function wentBackRow({ beganAt, words, replayed, failed }: StorageAnswer["wentBack"][number]): Html {
  const lost = failed.map((one) => html`<code>${one.kind}</code> ${one.key}: ${one.words}<br>`);
  return html`<tr><td>${instant(beganAt)}</td><td class="wide">${words}</td><td class="number">${replayed === null ? "no journal" : countText(replayed)}</td><td class="wide">${failed.length === 0 ? "–" : lost}</td></tr>`;
}

function agedRow(table: StoredTable): Html {
  const { expectedBytes, policy, since, end } = table;
  const kept =
    policy === null ? keptText(table) : html`<a href="/policies?show=all#${policy}">${keptText(table)}</a>`;
  return html`<tr><th scope="row"><code>${table.table}</code></th><td class="number">${bytesText(sizeOf(table))}</td><td class="number">${expectedBytes === null ? "–" : bytesText(expectedBytes)}</td><td class="number">${countText(table.rows)}</td><td>${kept}</td><td>${since === null ? "–" : instant(since)}</td><td class="wide">${end}</td></tr>`;
}

function otherRow(table: StoredTable): Html {
  return html`<tr><th scope="row"><code>${table.table}</code></th><td class="number">${bytesText(sizeOf(table))}</td><td class="number">${countText(table.rows)}</td><td class="wide">${table.end}</td></tr>`;
}

/** For the command, too. */
export function keptText({ keptDays }: Pick<StoredTable, "keptDays">): string {
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
