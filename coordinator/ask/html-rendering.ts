/** Renders a document as the content of a page. */
import { mayDo } from "#core/actor";
import { anonymousVisit, type Visit } from "../web/access.ts";
import {
  buttonForm,
  confirmField,
  confirmForm,
  empty as emptyState,
  filterChips,
  type Heading,
  options,
  pager,
  tableOf,
  titleRow,
} from "../web/components.ts";
import { countText } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import { formToken } from "../web/page-frame.ts";
import { historySection } from "../web/time-chart.ts";
import { type Field, fieldsIn, textOf } from "./fields.ts";
import type {
  Action,
  AnyOperation,
  Column,
  Document,
  Filters,
  Form,
  Inline,
  Node,
  Onward,
  Seen,
  Table,
} from "./operation.ts";
import { htmlCell, htmlOf, isNothing } from "./words.ts";

/** The reader, the URL, and the question that the document answers. */
export interface Shown extends Pick<Seen<unknown>, "viewer"> {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly operation: AnyOperation;
  readonly refused?: Refused;
}

/** The input of a form that was refused, and what is wrong with it. */
export interface Refused {
  readonly operation: AnyOperation;
  /** The path that the form was sent to. */
  readonly to: string;
  readonly values: Readonly<Record<string, unknown>>;
  readonly fault: string;
}

/** Whether it is the form that was refused. Several forms of one operation differ in the values that they send. */
const isRefused = ({ operation, path, values = {}, without = [] }: Form, refused: Refused) =>
  operation === refused.operation &&
  formPath(operation, path) === refused.to &&
  without.every((name) => textOf(values[name]) === textOf(refused.values[name]));

export const holdsRefused = (nodes: readonly Node[], refused: Refused): boolean =>
  nodes.some((node) =>
    node.type === "form" ? isRefused(node, refused) : "nodes" in node && holdsRefused(node.nodes, refused),
  );

export function documentHtml(document: Document, seen: Shown): Html {
  const { title, beside, hasOwnHeading, above = [], nodes } = document;
  const heading = hasOwnHeading ? nothing : titleRow(title, html`${beside}`);
  const links = above.map(([name, href], at) => html`${at > 0 && " · "}<a href="${href}">${name}</a>`);
  return html`${links.length > 0 && html`<p class="page-path">${links}</p>`}${heading}${nodes.map((node) => nodeHtml(node, seen))}`;
}

/** Renders nodes outside a document. They may hold neither forms nor links that change the page's own URL. */
export const nodesHtml = (nodes: readonly (Node | null)[], viewer: Visit = anonymousVisit): Html =>
  html`${nodes.map((one) => one && nodeHtml(one, { viewer, path: "", query: {}, operation: {} as AnyOperation }))}`;

const classOf = (name: string) => (name === "" ? nothing : html` class="${name}"`);

/** The next step of an empty state, or nothing if there is none. */
const stepHtml = (then: Inline) => (then === "" ? nothing : html`${htmlOf(then)}`);

/** `level` is the heading level of the sections. */
function nodeHtml(node: Node, seen: Shown, level = 2): Html {
  switch (node.type) {
    case "words": {
      if (node.kind === "warning")
        return html`<div class="warning" role="note"><p>${htmlOf(node.words)}</p></div>`;
      const kind = { lead: "lead", note: "small", aside: "small", plain: "" }[node.kind];
      return html`<p${classOf(kind)}>${htmlOf(node.words)}</p>`;
    }
    case "facts":
      return html`<dl class="facts">${node.facts.map(
        (one) => one && html`<div><dt>${one[0]}</dt><dd>${htmlOf(one[1])}</dd></div>`,
      )}</dl>`;
    case "tiles":
      return html`<dl class="${`tiles ${node.kind}`.trim()}">${node.tiles.map(
        (one) =>
          one &&
          html`<div class="tile"><dt>${one[0]}</dt><dd>${
            one[3] === undefined
              ? html`<span class="figure">${htmlOf(one[1])}</span>`
              : html`<a class="figure" href="${one[3]}">${htmlOf(one[1])}</a>`
          }${isNothing(one[2]) ? nothing : html`<span class="small">${htmlOf(one[2])}</span>`}</dd></div>`,
      )}</dl>`;
    case "table":
      return tableHtml(node, seen);
    case "list":
      return html`<ul${classOf(node.kind)}>${node.items.map((one) => html`<li>${htmlOf(one)}</li>`)}</ul>`;
    case "section": {
      const title = htmlOf(node.title);
      const within = node.nodes.map((one) => nodeHtml(one, seen, level + 1));
      if (node.isFolded)
        return node.kind === undefined
          ? html`<details class="listed"><summary>${title}</summary>${within}</details>`
          : html`<details class="${node.kind}"><summary>${title}</summary><div>${within}</div></details>`;
      const id = node.id === undefined ? nothing : html` id="${node.id}"`;
      const heading = level === 2 ? html`<h2>${title}</h2>` : html`<h3>${title}</h3>`;
      return html`<section${id}${classOf(node.kind ?? "")}>${heading}${within}</section>`;
    }
    case "group": {
      const within = node.nodes.map((one) => nodeHtml(one, seen, level));
      if (node.live !== undefined) return html`<section data-live="${node.live}">${within}</section>`;
      return html`<div${classOf(node.kind)}>${within}</div>`;
    }
    case "tabs":
      return html`<nav class="tabs" aria-label="${node.label}">${node.tabs.map(
        ({ title, href, isCurrent }) =>
          html`<a href="${href}"${isCurrent ? html` aria-current="true"` : nothing}>${htmlOf(title)}</a>`,
      )}</nav>`;
    case "empty":
      return emptyState(node.what, stepHtml(node.then));
    case "actions": {
      const open = node.actions.filter((one) => isFor(one, seen));
      if (open.length === 0) return nothing;
      return html`<div class="actions" role="group" aria-label="What can be done">${open.map((one) => actionHtml(one, seen))}</div>`;
    }
    case "form":
      return isFor(node, seen) ? formHtml(asTyped(node, seen), seen) : nothing;
    case "filters":
      return filtersHtml(node, seen);
    case "pager":
      return pager({ path: seen.path, query: seen.query, page: node.page, more: node.more });
    case "onward":
      return onwardHtml(node, seen);
    case "history":
      return historySection(seen.path, seen.query, node.history);
    case "code":
      return html`<pre><code>${node.text}</code></pre>`;
    case "picture":
      return node.html;
  }
}

function onwardHtml(
  { next, words, name = "after", first = "First page", before, part }: Onward,
  { path, query }: Shown,
): Html {
  const isFirst = query[name] === undefined;
  if (isFirst && next === null) return nothing;
  const within = part === undefined ? "" : `#${part}`;
  const to = (at: string | number | null) => pathWith(path, { ...query, [name]: at }) + within;
  const back =
    before === undefined
      ? html`<a href="${to(null)}">${first}</a>`
      : html`<a href="${to(before)}" rel="prev">← Before</a>`;
  return html`<nav class="pager" aria-label="Parts of the list">${!isFirst && back}${
    next === null ? html`<span>That is all.</span>` : html`<a href="${to(next)}" rel="next">${words}</a>`
  }</nav>`;
}

function isFor(
  { operation, path }: Pick<Action, "operation" | "path">,
  { viewer }: Pick<Shown, "viewer">,
): boolean {
  const { crawlerIn, partnersToo, needs } = operation;
  const crawler = crawlerIn === undefined ? undefined : path?.[crawlerIn];
  return mayDo(
    viewer.actor,
    needs,
    crawler === undefined ? null : { crawler: String(crawler), partnersToo: partnersToo === true },
  );
}

function tableHtml<Row>(table: Table<Row>, seen: Shown): Html {
  const { label, columns, rows, empty: [what, then] = ["None.", ""], actions, most, kind } = table;
  if (rows.length === 0) return emptyState(what, stepHtml(then));
  const onPage = columns.filter(({ title, offPage }) => title !== null && !offPage);
  const shown = most === undefined ? rows : rows.slice(0, most);
  const deeds = shown.map((row) => (actions?.(row) ?? []).filter((one) => isFor(one, seen)));
  const hasDeeds = deeds.some((all) => all.length > 0);
  const heads = onPage.map((column) => headOf(column, table, seen));
  const body = tableOf(
    label,
    [...heads, hasDeeds && "(Change)"],
    shown.map((row, at) => [row, deeds[at]!] as const),
    ([row, own]) => [
      ...onPage.map((column) => htmlCell(column, row)),
      own.map((one) => actionHtml(one, seen)),
    ],
    kind,
  );
  if (shown.length === rows.length) return body;
  return html`${body}<p class="small">The first ${countText(shown.length)} of ${countText(rows.length)}; CSV and JSON have all.</p>`;
}

/** The heading of a sortable column links to that order, or to its opposite direction if it is the current order. */
function headOf<Row>(
  { title, unit, kind, sort }: Column<Row>,
  { order }: Pick<Table<Row>, "order">,
  { path, query }: Shown,
): string | Heading {
  const style = kind ?? (unit === undefined ? "" : "number");
  if (sort === undefined || order === undefined) return style === "" ? title! : `${title} .${style}`;
  const [name, first] = sort;
  const isUp = order.direction === "up";
  const isInForce = name === order.sort;
  const direction = !isInForce ? first : isUp ? "down" : "up";
  const asked = { sort: name, order: direction === first ? null : direction, after: null, page: null };
  const link = html`<a href="${pathWith(path, { ...query, ...asked })}">${title}${isInForce && html` <span aria-hidden="true">${isUp ? "↑" : "↓"}</span>`}</a>`;
  return {
    ...{ title: link, kind: style },
    ...(isInForce ? { sorted: isUp ? "ascending" : "descending" } : {}),
  };
}

/** Returns the path of a form, with its values filled in. */
export function formPath({ page }: AnyOperation, path: Action["path"] = {}): string {
  return (page ?? "").replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(path[name] ?? "")));
}

function actionHtml(
  { operation, path, values = {}, label = labelOf(operation), kind, typed }: Action,
  { viewer }: Pick<Shown, "viewer">,
): Html {
  const to = { path: formPath(operation, path), label };
  if (operation.method === "get")
    return html`<a class="button ${kind ?? "quiet"} slim" href="${pathWith(to.path, values)}">${label}</a>`;
  if (typed !== undefined) return confirmForm(viewer, { ...to, typed, id: slug(`confirm-${to.path}`) });
  const fields = Object.entries(values).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  );
  return buttonForm(viewer, { ...to, ...(kind === undefined ? {} : { kind }) }, html`${fields}`);
}

export const labelOf = ({ label, summary }: AnyOperation) => label ?? summary;

const slug = (text: string) => text.replace(/[^\w]+/g, "-").replace(/^-|-$/g, "");

const asTyped = (one: Form, { refused }: Shown): Form =>
  refused !== undefined && isRefused(one, refused)
    ? { ...one, values: { ...one.values, ...refused.values }, fault: refused.fault }
    : one;

/** `level` is that of its heading, which is 1 if the page shows nothing else. */
export function formHtml(one: Form, { viewer }: Pick<Shown, "viewer">, level: 1 | 2 = 2): Html {
  const { operation, title, words, label = labelOf(operation), path, values = {}, without = [], fault } = one;
  const fields = fieldsIn(operation.body?.schema ?? operation.input).filter(
    ({ name, isHidden }) => !without.includes(name) && !isHidden && name !== "confirmation",
  );
  const to = formPath(operation, path);
  const hidden = without.flatMap((name) =>
    values[name] === undefined
      ? []
      : [html`<input type="hidden" name="${name}" value="${textOf(values[name])}">`],
  );
  const shown = fields.map((field) =>
    fieldHtml(field, { prefix: slug(to), value: values[field.name], choices: one.choices?.[field.name] }),
  );
  const typed = one.typed === undefined ? nothing : confirmField(slug(`${to}-confirmation`), one.typed);
  const button = html`<button${classOf([one.kind ?? "", title === undefined ? "slim" : ""].join(" ").trim())}>${label}</button>`;
  const alert = fault === undefined ? nothing : html`<p class="fault" role="alert">${fault}</p>`;
  const small = words === undefined ? nothing : html`<p class="small">${htmlOf(words)}</p>`;
  const named = level === 2 ? html`<h2>${title}</h2>` : html`<h1>${title}</h1>`;
  const heading = title === "" ? nothing : named;
  const token = operation.method === "get" ? nothing : operation.isOpen ? trap(slug(to)) : formToken(viewer);
  const body = (kind: string) =>
    html`<form class="${kind}" method="${operation.method}" action="${to}">${token}${hidden}${shown}${typed}${button}</form>`;
  if (title === undefined) return html`${alert}${small}${body("actions")}`;
  return html`<section>${heading}${alert}${small}${body("form")}</section>`;
}

/** The name of a field that is invisible to people, so that only a program fills it in. */
export const trapField = "website";

const trap = (prefix: string) =>
  html`<span class="hidden" aria-hidden="true"><label for="${prefix}-${trapField}">Leave this empty</label>
<input id="${prefix}-${trapField}" name="${trapField}" tabindex="-1" autocomplete="off"></span>`;

interface FieldLook {
  /** The prefix of field ids, which must be unique on a page. */
  readonly prefix: string;
  readonly value?: unknown;
  /** Choices that only the answer knows; they replace the schema's. */
  readonly choices?: Readonly<Record<string, string>> | undefined;
}

function fieldHtml(field: Field, { prefix, value = field.usual, choices: found }: FieldLook): Html {
  const { name, label, words, isNeeded, type, isLong, mostLength, example } = field;
  const named = field.choices?.map((one) => [one, field.choiceWords[one] ?? one] as const);
  const choices = found ?? (named && Object.fromEntries(named));
  const id = `${prefix}-${name}`;
  const hasWords = words !== label && words !== "";
  const under = hasWords
    ? html`<span class="small" id="${id}-words">${/[.?!]$/.test(words) ? words : `${words}.`}</span>`
    : nothing;
  if (type === "boolean") {
    const checked = value === true || value === "yes" ? html` checked` : nothing;
    const box = html`<input type="checkbox" name="${name}" value="yes"${checked}>`;
    return html`<div><label class="choice">${box}${label}</label>${under}</div>`;
  }
  if (type === "array" && choices !== undefined) {
    const chosen = Array.isArray(value) ? value : [];
    const boxes = Object.entries(choices).map(([one, meaning]) => {
      const checked = chosen.includes(one) ? html` checked` : nothing;
      const box = html`<input type="checkbox" name="${`${name}-${one}`}" value="yes"${checked}>`;
      return html`<label class="choice">${box}<span>${one}${meaning !== one && html` <span class="small">${meaning}</span>`}</span></label>`;
    });
    return html`<fieldset><legend>${label}</legend>${boxes}${under}</fieldset>`;
  }
  const required = isNeeded ? html` required` : nothing;
  const most = mostLength === undefined ? nothing : html` maxlength="${mostLength}"`;
  const like = example === "" ? nothing : html` placeholder="${example}"`;
  const described = hasWords ? html` aria-describedby="${id}-words"` : nothing;
  const shared = html`id="${id}" name="${name}"${required}${described}`;
  const isNumber = type === "number" || type === "integer";
  const numeric = isNumber ? html` class="number" inputmode="decimal"` : nothing;
  const typed = html` autocomplete="off" spellcheck="false"`;
  const text = textOf(value, field);
  const input =
    choices !== undefined
      ? html`<select ${shared}>${options(choicesOf(field, choices), text)}</select>`
      : isLong
        ? html`<textarea ${shared} rows="3"${most}${like}${typed}>\n${text}</textarea>`
        : html`<input ${shared}${numeric}${most}${like}${typed} value="${text}">`;
  return html`<div><label for="${id}">${label}</label>${input}${under}</div>`;
}

/** Begins with an empty choice if the field may be left out. */
function choicesOf({ isNeeded, usual, unchosen }: Field, choices: Readonly<Record<string, string>>) {
  const named = Object.entries(choices);
  return isNeeded || usual !== undefined ? named : [["", unchosen] as const, ...named];
}

/** Returns the width of a filter's field in characters. */
const sizeOf = (mostLength = 200) => Math.min(16, mostLength + 2);

function filtersHtml(
  { names, choices = {}, also = {}, shown = {}, label }: Filters,
  { path, query: asked, operation }: Shown,
): Html {
  const query = { ...asked, ...also };
  const fields = fieldsIn(operation.input).filter(({ name }) => names.includes(name));
  const kept = Object.entries(query).filter(
    ([name, value]) =>
      value !== "" &&
      !names.includes(name) &&
      !["page", "offset", "after", "beforeId", "format"].includes(name),
  );
  const wordsOf = (name: string, value: string) =>
    Object.hasOwn(choices[name] ?? {}, value) ? choices[name]![value]! : value;
  const field = (one: Field) => {
    const { name, label: of, isNeeded, isDate, usual, mostLength, example } = one;
    const value = query[name] ?? textOf(usual);
    const offered = choices[name] && [...new Set([...Object.keys(choices[name]), value])];
    const all = one.choices ?? offered?.filter((one) => one !== "");
    if (all !== undefined) {
      const listed = all.map((one) => [one, wordsOf(name, one)] as const);
      const any = isNeeded || usual !== undefined ? listed : [["", "any"] as const, ...listed];
      return html`<label>${of} <select name="${name}">${options(any, value)}</select></label>`;
    }
    const bounds = isDate
      ? html` type="date"`
      : html` maxlength="${mostLength ?? 200}" size="${sizeOf(mostLength)}" placeholder="${example}" autocapitalize="none" spellcheck="false"`;
    return html`<label>${of} <input name="${name}" value="${value}"${bounds} autocomplete="off"></label>`;
  };
  const chips = fields.flatMap(({ name, label: of, usual }) => {
    const value = query[name] ?? "";
    return value === "" || value === textOf(usual)
      ? []
      : [{ name, label: of, value: shown[name]?.(value) ?? wordsOf(name, value) }];
  });
  return html`<form class="filter-row fleet-filters" method="get" action="${path}" role="search" aria-label="${label}">${kept.map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )}${fields.map(field)}<button class="slim">Show</button></form>${filterChips(path, query, chips)}`;
}
