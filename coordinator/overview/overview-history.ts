/** The overview's history: pages, bytes and probes a minute over an hour, a day or a week. */

import { lineChart } from "../web/components.ts";
import { rateText } from "../web/format.ts";
import { type Html, html } from "../web/html.ts";
import { bytesText } from "../who/words.ts";
import {
  type History,
  type HistoryPoint,
  type HistoryRange,
  historyRangeNames,
  historyRanges,
} from "./operation-types.ts";
import { rangeWords } from "./operation-words.ts";

/** The live region of this range; a page shows one of them. */
export const historyRegion = (range: HistoryRange): string => `history-${range}`;

const times: Readonly<Record<HistoryRange, readonly [string, string, string]>> = {
  "1h": ["60 min ago", "30 min ago", "now"],
  "24h": ["24 h ago", "12 h ago", "now"],
  "7d": ["7 days ago", "3½ days ago", "now"],
};

export function historySection(history: History): Html {
  const { range } = history;
  const chart = (title: string, of: (point: HistoryPoint) => number, text: (value: number) => string) =>
    lineChart({
      ...{ title, text },
      values: history.points.map((point) => (point === null ? null : of(point))),
      times: times[range],
      span: rangeWords[range],
    });
  return html`<h2 id="history">History <span class="ranges">${historyRangeNames.map((name) => rangeLink(name, range))}</span></h2>
<div class="charts">
${chart("Pages a minute", (point) => point.pagesPerMinute, rateText)}
${chart(
  "Fetched a minute",
  (point) => point.fetchedBytesPerMinute,
  (bytes) => bytesText(Math.round(bytes)),
)}
${chart("Probes a minute", (point) => point.probesPerMinute, rateText)}
</div>`;
}

function rangeLink(name: HistoryRange, current: HistoryRange): Html {
  const mark = name === current ? html` aria-current="true"` : null;
  return html`<a href="/?range=${name}#history"${mark}>${historyRanges[name].words}</a>`;
}
