/** /audit: every change, who made it, and what was before. For operators. */

import { type AuditEntry, type AuditLog, type AuditQuery, changedFields } from "#core/audit";
import { UsageError } from "#core/errors";
import { instantWords } from "#core/format";
import type { WebPart } from "../web/actions.ts";
import { instant, sentence } from "../web/format.ts";
import { type CsvTable, type Html, html, nothing, pathWith } from "../web/html.ts";
import type { AskedView } from "../web/views.ts";
import { accessApi } from "./access-api.ts";

interface AuditRoutePorts {
  readonly audit: Pick<AuditLog, "list">;
}

export function auditRoutes(ports: AuditRoutePorts): WebPart {
  return ({ views }) => {
    views.describe({
      path: "/audit",
      operation: accessApi.audit,
      view: async (asked) => await auditView(asked, ports),
    });
  };
}

async function auditView({ query }: AskedView, { audit }: AuditRoutePorts) {
  const asked: AuditAsked = {
    actor: query("actor"),
    action: query("action"),
    target: query("target"),
    since: query("since"),
    until: query("until"),
    beforeId: query("beforeId"),
    limit: query("limit"),
  };
  try {
    const found = await audit.list(readAuditQuery(asked));
    const page: AuditPage = { asked, ...found };
    return {
      status: 200,
      value: found,
      title: "Audit log",
      body: () => auditBody(page),
      csv: () => auditTable(found.entries),
    };
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
}

function auditTable(entries: readonly AuditEntry[]): CsvTable {
  const columns = [
    "entryId",
    "at",
    "actor",
    "via",
    "remoteAddress",
    "action",
    "target",
    "words",
    "before",
    "after",
  ];
  const jsonOf = (value: unknown) => (value === undefined ? null : JSON.stringify(value));
  return {
    columns,
    rows: entries.map((one) => [
      one.entryId,
      one.at.toISOString(),
      one.actor,
      one.via,
      one.remoteAddress,
      one.action,
      one.target,
      one.words,
      jsonOf(one.before),
      jsonOf(one.after),
    ]),
  };
}

/** All as typed; an empty text asks for nothing. */
interface AuditAsked {
  readonly actor: string;
  readonly action: string;
  readonly target: string;
  /** Days of the calendar, UTC: from the first through the last. */
  readonly since: string;
  readonly until: string;
  readonly beforeId: string;
  readonly limit: string;
}

const auditLimit = { usual: 50, most: 500 } as const;
const mostText = 300;
const dayMs = 86_400_000;

/** Throws a UsageError that names what is wrong. */
function readAuditQuery(asked: AuditAsked): AuditQuery {
  const since = dayOf("since", asked.since);
  const until = dayOf("until", asked.until);
  const beforeId = numberOf("beforeId", asked.beforeId, Number.MAX_SAFE_INTEGER);
  return {
    ...textOf("actor", asked.actor),
    ...textOf("action", asked.action),
    ...textOf("target", asked.target),
    ...(since === null ? {} : { since }),
    ...(until === null ? {} : { until: new Date(until.getTime() + dayMs) }),
    ...(beforeId === null ? {} : { beforeId }),
    limit: numberOf("limit", asked.limit, auditLimit.most) ?? auditLimit.usual,
  };
}

function textOf(name: "actor" | "action" | "target", text: string): Partial<AuditQuery> {
  const trimmed = text.trim();
  if (trimmed.length > mostText) throw new UsageError(`${name}: longer than ${mostText} characters`);
  return trimmed === "" ? {} : { [name]: trimmed };
}

function dayOf(name: string, text: string): Date | null {
  if (text.trim() === "") return null;
  const day = new Date(`${text.trim()}T00:00:00.000Z`);
  if (Number.isNaN(day.getTime()) || day.toISOString().slice(0, 10) !== text.trim())
    throw new UsageError(`${name}: "${text.slice(0, 40)}" is not a day such as 2026-03-01`);
  return day;
}

function numberOf(name: string, text: string, most: number): number | null {
  if (text.trim() === "") return null;
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 1 || number > most)
    throw new UsageError(`${name}: "${text.slice(0, 40)}" is not a whole number from 1 to ${most}`);
  return number;
}

interface AuditPage {
  readonly asked: AuditAsked;
  readonly entries: readonly AuditEntry[];
  readonly more: boolean;
}

function auditBody(page: AuditPage): Html {
  return html`<h1>Audit log</h1>
<p class="lead">Every change, who made it and how, the latest first. “coordinator” marks those that it made by itself.</p>
${filters(page.asked)}
${page.entries.length === 0 ? nothingFound(page.asked) : table(page.entries)}
${pager(page)}`;
}

function filters(asked: AuditAsked): Html {
  return html`<form class="audit-filters" action="/audit">
${field(asked, "actor", "Actor")}${field(asked, "action", "Action")}${field(asked, "target", "Target")}
${field(asked, "since", "From (UTC)", "date")}${field(asked, "until", "Through (UTC)", "date")}
<button>Show</button>${isFiltered(asked) ? html`<a class="button quiet" href="/audit">Show all</a>` : nothing}</form>`;
}

type FieldName = "actor" | "action" | "target" | "since" | "until";

function field(asked: AuditAsked, name: FieldName, label: string, type = "text"): Html {
  return html`<div><label for="audit-${name}">${label}</label><input id="audit-${name}" name="${name}" type="${type}"
value="${asked[name]}" maxlength="300" autocomplete="off" spellcheck="false"></div>`;
}

const isFiltered = (asked: AuditAsked) =>
  [asked.actor, asked.action, asked.target, asked.since, asked.until].some((text) => text !== "");

function nothingFound(asked: AuditAsked): Html {
  return isFiltered(asked)
    ? html`<div class="empty"><p>No entries match. Give whole names: <code>crawler-drained</code>, not
<code>drain</code>. <a href="/audit">Show all</a></p></div>`
    : html`<div class="empty"><p>No changes yet. Those made on these pages, with a token or with the <code>nearcrawl</code> command appear here.</p></div>`;
}

function table(entries: readonly AuditEntry[]): Html {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Entries"><table class="audit">
<thead><tr><th scope="col">When</th><th scope="col">Actor</th><th scope="col">Action</th><th
scope="col">Target</th><th scope="col">Description</th></tr></thead>
<tbody>${entries.map(row)}</tbody></table></div>`;
}

function row(entry: AuditEntry): Html {
  const { at, actor, via, action, target, words, remoteAddress } = entry;
  return html`<tr><td class="nowrap">${instant(at)}</td>
<td><a href="${pathWith("/audit", { actor })}">${actor}</a><br><span
class="small">${viaWords[via]}${remoteAddress === null ? nothing : html`, <span class="mono">${remoteAddress}</span>`}</span></td>
<td class="nowrap"><a href="${pathWith("/audit", { action })}">${action}</a></td>
<td class="break">${target === null ? html`<span class="small">everything</span>` : html`<a href="${pathWith("/audit", { target })}">${target}</a>`}</td>
<td class="audit-words">${withInstants(words)}${changes(entry)}</td></tr>`;
}

const viaWords = { page: "page", api: "API", command: "command", coordinator: "by itself" } as const;

function changes({ before, after }: AuditEntry): Html {
  const fields = changedFields(before, after);
  if (fields.length === 0) return nothing;
  return html`<details><summary>${fields.length === 1 ? "1 value" : `${fields.length} values`}</summary><dl class="changes">${fields.map(
    (one) =>
      html`<dt>${one.field === "" ? "value" : one.field}</dt><dd>${changeText(one.before, one.after)}</dd>`,
  )}</dl></details>`;
}

/** Whoever made the change wrote instants as ISO 8601. */
function withInstants(words: string): Html {
  return sentence(words.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, (iso) => instantWords(iso)));
}

function changeText(before: string | null, after: string | null): Html {
  if (before === null) return html`<ins>${withInstants(after ?? "")}</ins>`;
  if (after === null) return html`<del><span class="hidden">was </span>${before}</del>`;
  return html`<del><span class="hidden">from </span>${before}</del> <span aria-hidden="true">→</span> <ins><span class="hidden">to </span>${after}</ins>`;
}

function pager({ asked, entries, more }: AuditPage): Html {
  const last = entries.at(-1);
  if (asked.beforeId === "" && !more) return nothing;
  return html`<nav class="pager" aria-label="Pages of the log">${
    asked.beforeId === ""
      ? nothing
      : html`<a
href="${pathWith("/audit", { ...asked, beforeId: null })}">The latest</a>`
  }${
    more && last
      ? html`<a
href="${pathWith("/audit", { ...asked, beforeId: last.entryId })}">Earlier ones</a>`
      : nothing
  }</nav>`;
}
