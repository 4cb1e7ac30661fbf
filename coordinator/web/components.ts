/** Components that pages share: headings, figures, one-button forms, tables. */
import { type Actor, mayDo, type Scope } from "#core/actor";
import { askAbout, countText, instant } from "./format.ts";
import { type Html, type HtmlValue, html, nothing, pathWith } from "./html.ts";
import { formToken, type PageViewer } from "./page-frame.ts";

/** The page heading. Tabs belong to the frame (navigation.ts). */
export function titleRow(title: string, more: Html = nothing): Html {
  return html`<div class="title-row"><h1>${title}</h1>${more}</div>`;
}

export function tile(name: string, figure: string | Html, more: Html | string = nothing): Html {
  return html`<div class="tile"><dt>${name}</dt><dd><span class="figure">${figure}</span>${
    more === nothing ? nothing : html`<span class="small">${more}</span>`
  }</dd></div>`;
}

export function fact(name: string, value: Html | string | number): Html {
  return html`<div><dt>${name}</dt><dd>${value}</dd></div>`;
}

export function dateOr(date: Date | null, otherwise: string): Html {
  return date === null ? html`${otherwise}` : instant(date);
}

/** A one-button form. */
export function buttonForm(
  viewer: PageViewer,
  to: { readonly path: string; readonly label: string; readonly kind?: "quiet" | "danger" | "plain" },
  fields: Html = nothing,
): Html {
  const kind = to.kind === "plain" ? "slim" : `slim ${to.kind ?? "quiet"}`;
  return html`<form method="post" action="${to.path}">${formToken(viewer)}${fields}<button class="${kind}">${to.label}</button></form>`;
}

/** A form for a destructive action, which requires `typed` to be typed. */
export function confirmForm(
  viewer: PageViewer,
  to: { readonly path: string; readonly label: string; readonly typed: string; readonly id: string },
): Html {
  return html`<form class="confirm" method="post" action="${to.path}">${formToken(viewer)}${confirmField(to.id, to.typed)}
<button class="slim danger">${to.label}</button></form>`;
}

export const confirmField = (id: string, typed: string): Html =>
  html`<label for="${id}">Type <code>${typed}</code> to confirm</label><input id="${id}" name="confirmation" required
 maxlength="100" autocomplete="off" autocapitalize="none" spellcheck="false">`;

export function options(values: readonly (readonly [value: string, name: string])[], chosen: string): Html {
  return html`${values.map(
    ([value, name]) =>
      html`<option value="${value}"${value === chosen ? html` selected` : nothing}>${name}</option>`,
  )}`;
}

interface Paged {
  readonly path: string;
  readonly query: Readonly<Record<string, string | number | null | undefined>>;
  readonly page: number;
  readonly more: boolean;
}

export function pager({ path, query, page, more }: Paged): Html {
  if (page === 1 && !more) return nothing;
  const to = (number: number) => pathWith(path, { ...query, page: number === 1 ? null : number });
  return html`<nav class="pager" aria-label="Pages of the list">${
    page > 1 ? html`<a href="${to(page - 1)}" rel="prev">← Page ${countText(page - 1)}</a>` : nothing
  }<span>Page ${countText(page)}</span>${more ? html`<a href="${to(page + 1)}" rel="next">Page ${countText(page + 1)} →</a>` : nothing}</nav>`;
}

export function crawlerPath(name: string, deed = ""): string {
  return `/crawlers/${encodeURIComponent(name)}${deed}`;
}

/** Links to the crawler's page, or shows `otherwise`. */
export function crawlerOr(name: string | null, otherwise: string): Html {
  return name === null ? html`${otherwise}` : html`<a href="${crawlerPath(name)}">${name}</a>`;
}

/** A crawler's name, linked if the viewer may open its page. */
export function crawlerFor({ actor }: PageViewer, name: string): Html {
  const isOpen = !name.includes(" ") && mayDo(actor, "read", { crawler: name, partnersToo: true });
  return isOpen ? crawlerOr(name, "") : html`${name}`;
}

/** A subnet or URL, linked to its look-up if the viewer may read. */
export function askFor({ actor }: PageViewer, text: string): Html {
  return mayDo(actor, "read") ? askAbout(text) : html`<span class="mono break">${text}</span>`;
}

export function empty(what: string, then: Html | string): Html {
  return html`<div class="empty"><p><strong>${what}</strong> ${then}</p></div>`;
}

/** A placeholder while an answer is prepared, with a status text. */
export function skeleton(words: Html | string): Html {
  return html`<p class="lead" role="status">${words}</p>
<div class="skeleton" aria-hidden="true"><div class="skeleton-tiles"><i></i><i></i><i></i><i></i></div><i></i><i></i><i></i><i></i><i></i><i></i></div>`;
}

/** Explains why a viewer sees no buttons. */
export function onlyOperators(actor: Actor, scope: Scope, what: string): Html {
  if (mayDo(actor, scope)) return nothing;
  const first = actor.role === "anybody" ? html`, once they have <a href="/sign-in">signed in</a>` : nothing;
  return html`<p class="small">${what}: that is for operators${first}.</p>`;
}

export interface TableColumn<One> {
  readonly title: string | Html;
  readonly cell: (one: One) => HtmlValue;
  /** The layout of its cells: figures align right; texts are wide, break anywhere, or never break. */
  readonly kind?: "number" | "wide" | "break" | "wide break" | "nowrap" | undefined;
}

export const column = <One>(
  title: string | Html,
  cell: TableColumn<One>["cell"],
  kind?: TableColumn<One>["kind"],
): TableColumn<One> => ({ title, cell, kind });

export const numberColumn = <One>(title: string, cell: TableColumn<One>["cell"]): TableColumn<One> =>
  column(title, cell, "number");

export const wideColumn = <One>(title: string, cell: TableColumn<One>["cell"]): TableColumn<One> =>
  column(title, cell, "wide");

/** A table from column definitions. */
export function dataTable<One>(
  label: string,
  columns: readonly TableColumn<One>[],
  rows: readonly One[],
  kind = "",
): Html {
  return tableWith(label, columns, rows, (one) => columns.map(({ cell }) => cell(one)), kind);
}

/**
 * A table whose first column contains row headers. It scrolls horizontally when too wide. A heading may end in the class of
 * its cells, as in `Subnets .number`. A heading in parentheses is shown only to screen readers, and `false` omits the column.
 */
export function tableOf<One>(
  label: string,
  heads: readonly (string | Heading | false)[],
  rows: readonly One[],
  cells: (one: One) => readonly HtmlValue[],
  kind = "",
): Html {
  const columns = heads.map((head) => (head === false ? null : headingOf(head)));
  return tableWith(label, columns, rows, cells, kind);
}

export type Heading = Pick<TableColumn<unknown>, "title"> & {
  readonly kind?: string | undefined;
  /** The rows are sorted by this column. */
  readonly sorted?: "ascending" | "descending";
};

function tableWith<One>(
  label: string,
  columns: readonly (Heading | null)[],
  rows: readonly One[],
  cells: (one: One) => readonly HtmlValue[],
  kind: string,
): Html {
  const headOf = (column: Heading | null) => {
    if (column === null) return null;
    const { title, sorted } = column;
    const order = sorted === undefined ? nothing : html` aria-sort="${sorted}"`;
    return html`<th scope="col"${classOf(headKinds.find((one) => one === column.kind))}${order}>${title}</th>`;
  };
  const cellOf = (value: HtmlValue, at: number) => {
    const column = columns[at];
    const rest = html`${classOf(column?.kind)}>${value}`;
    return column && (at === 0 ? html`<th scope="row"${rest}</th>` : html`<td${rest}</td>`);
  };
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${label}"><table${classOf(kind)}>
<thead><tr>${columns.map(headOf)}</tr></thead>
<tbody>${rows.map((one) => html`<tr>${cells(one).map(cellOf)}</tr>`)}</tbody></table></div>`;
}

const headKinds = ["number", "bar-column"];

function headingOf(head: string | Heading): Heading {
  if (typeof head !== "string") return head;
  const [title = "", kind] = head.split(" .");
  const hidden = /^\((.+)\)$/.exec(title)?.[1];
  return { title: hidden === undefined ? title : html`<span class="hidden">${hidden}</span>`, kind };
}

const classOf = (name = "") => (name === "" ? nothing : html` class="${name}"`);

export const small = (words: HtmlValue): Html => html`<span class="small">${words}</span>`;

/** A bar for a share from 0 to 1. The figure is shown beside it. */
export function shareBar(share: number): Html {
  const width = Math.round(1000 * Math.min(1, Math.max(0, share))) / 10;
  return html`<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect
class="bar-ground" width="100" height="8"/><rect class="bar-value" width="${width}" height="8"/></svg>`;
}

// Filter chips: each shows one filter of the URL and links to the list without it. Only the URL holds the filters, so that
// lists can be shared and bookmarked.

export interface FilterChip {
  /** The URL parameter. */
  readonly name: string;
  /** The filter's name: "Language". */
  readonly label: string;
  /** The readable value: "German". */
  readonly value: string;
  /** Changes of the query that remove the filter, if they are more than dropping its own parameter. */
  readonly without?: AddressQuery;
}

type AddressQuery = Readonly<Record<string, string | number | null | undefined>>;

/** Removing a filter returns to the first page. */
const firstPage: AddressQuery = { page: null, offset: null, after: null };

/** `query` holds all URL parameters of the list, including those that are not filters (sort, limit). */
export function filterChips(path: string, query: AddressQuery, chips: readonly FilterChip[]): Html {
  if (chips.length === 0) return nothing;
  const link = (changes: AddressQuery) => pathWith(path, { ...query, ...firstPage, ...changes });
  const withoutOne = ({ name, without = { [name]: null } }: FilterChip) => link(without);
  const chip = (one: FilterChip) =>
    html`<li><a href="${withoutOne(one)}"><span>${one.label}: <strong><bdi>${one.value}</bdi></strong></span> <span
 aria-hidden="true">×</span><span class="hidden"> (remove this filter)</span></a></li>`;
  return html`<ul class="chips" aria-label="Active filters">${chips.map(chip)}${
    chips.length > 1
      ? html`<li><a class="clear" href="${link(withoutAll(chips))}">Clear all filters</a></li>`
      : nothing
  }</ul>`;
}

function withoutAll(chips: readonly FilterChip[]): AddressQuery {
  return Object.assign({}, ...chips.map(({ name, without = { [name]: null } }) => without));
}
