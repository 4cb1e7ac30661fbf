/** The page of the change feed: the latest changes with filters. */
import { answersText } from "../results/stated-uses.ts";
import { column, dataTable, empty, options, titleRow } from "../web/components.ts";
import { type FilterChip, filterChips } from "../web/filter-chips.ts";
import { askAbout, instant } from "../web/format.ts";
import { type CsvTable, type Html, html, nothing, pathWith } from "../web/html.ts";
import { changeKinds } from "./changes-api.ts";
import { foldedDifference } from "./difference-page.ts";
import { changeWords, kindWords, type PageChange } from "./page-change.ts";
import type { ChangesAsked } from "./read-changes.ts";
import { differenceText } from "./text-difference.ts";

interface ChangesPage {
  readonly asked: ChangesAsked;
  /** By rising numbers. */
  readonly changes: readonly PageChange[];
  /** A cursor. */
  readonly next: number;
  readonly more: boolean;
}

export function changesBody(page: ChangesPage): Html {
  const { asked, changes } = page;
  return html`${titleRow("Changes")}
<p class="lead">Pages that were new, changed or gone when they were last fetched, latest first.</p>
${filters(asked)}
${dataTable<PageChange>("Changes", tableColumns, [...changes].reverse(), "feed")}
${changes.length === 0 ? nothingFound(page) : nothing}
${pager(page)}
<p class="small">Programs continue from a cursor:
<a href="${pathWith("/api/changes", { ...asked, since: page.next })}">JSON since ${page.next}</a>.
On the coordinator's machine: <code>nearcrawl changes</code>.</p>`;
}

function filters(asked: ChangesAsked): Html {
  const kinds = changeKinds.map((kind) => [kind, kindWords[kind]] as const);
  return html`<form class="feed-filters" action="/changes">
<div><label for="changes-kind">Change</label><select
 id="changes-kind" name="kind">${options([["", "everything"], ...kinds], asked.kind)}</select></div>
${texts.map((one) => field(asked, one))}
<button>Show</button></form>
${filterChips("/changes", { ...asked }, chipsOf(asked))}`;
}

const texts = [
  ["host", "Host", "www.example.org"],
  ["prefix", "URLs that begin with", "https://www.example.org/docs/"],
  ["dset", "Domain set", ".gr lang:el"],
] as const;

function chipsOf({ kind, ...asked }: ChangesAsked): FilterChip[] {
  const chips = texts.map(([name, label]) => ({ name, label, value: asked[name] }));
  const shown = changeKinds.find((one) => one === kind);
  return [
    { name: "kind", label: "Change", value: shown === undefined ? kind : kindWords[shown] },
    ...chips,
  ].filter(({ value }) => value !== "");
}

function field(asked: ChangesAsked, [name, label, like]: (typeof texts)[number]): Html {
  return html`<div><label for="changes-${name}">${label}</label><input id="changes-${name}" name="${name}"
 value="${asked[name]}" placeholder="${like}" maxlength="2000" autocomplete="off" spellcheck="false"></div>`;
}

const tableColumns = [
  column<PageChange>("When", ({ seenAt }) => instant(seenAt.toISOString()), "nowrap"),
  column<PageChange>(
    "Change",
    ({ kind }) => html`<span class="kind kind-${kind}">${kindWords[kind]}</span>`,
    "nowrap",
  ),
  column<PageChange>("Page", ({ url }) => askAbout(url), "break"),
  column<PageChange>(
    "Details",
    (change) => html`<bdi>${changeWords(change)}</bdi>${foldedDifference(change.difference)}`,
    "wide",
  ),
];

function nothingFound({ asked, more }: ChangesPage): Html {
  return asked.since !== "" && more
    ? empty("No match in this part of the feed.", "Continue: later parts may have some.")
    : empty("No changes match.", "New ones appear here as pages are fetched.");
}

/** Onwards through the feed, where it was asked for since a cursor; the latest have nothing behind them. */
function pager({ asked, next, more }: ChangesPage): Html {
  const at = (since: string | number | null) => pathWith("/changes", { ...asked, since });
  const links =
    asked.since === ""
      ? html`<a href="${at("earliest")}">Earliest change kept</a>`
      : html`<a href="${at(null)}">Latest</a>${more ? html`<a href="${at(next)}" rel="next">Later</a>` : nothing}`;
  return html`<nav class="pager" aria-label="Parts of the feed">${links}</nav>`;
}

const columns = [
  "number",
  "kind",
  "url",
  "host",
  "seenAt",
  "notedAt",
  "status",
  "reason",
  "language",
  "digestBefore",
  "digestAfter",
  "simhashDistance",
  "titleBefore",
  "titleAfter",
  "wordsBefore",
  "wordsAfter",
  "linksBefore",
  "linksAfter",
  "linksAdded",
  "linksRemoved",
  "location",
  "stated",
  "statedBefore",
  "difference",
] as const satisfies readonly (keyof PageChange)[];

export function changesCsv(changes: readonly PageChange[]): CsvTable {
  const textOf = (value: PageChange[(typeof columns)[number]]) => {
    if (value instanceof Date) return value.toISOString();
    if (typeof value !== "object" || value === null) return value;
    return "places" in value ? differenceText(value) : answersText(value.answers);
  };
  return {
    columns: columns.map((name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)),
    rows: changes.map((change) => columns.map((name) => textOf(change[name]))),
  };
}
