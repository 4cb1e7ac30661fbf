/** The /audit page, for operators: every change with its author and the previous value. */
import { z } from "zod";
import { type AuditEntry, type AuditLog, changedFields } from "#core/audit";
import { instantWords } from "#core/format";
import { column, filters, lead, onward, table } from "../../ask/document.ts";
import { operationsOf, type Seen } from "../../ask/operation.ts";
import { dateTime, record } from "../../web/api-operation.ts";
import { small } from "../../web/components.ts";
import { sentence } from "../../web/format.ts";
import { type Html, html, pathWith } from "../../web/html.ts";

const auditEntry = record("AuditEntry", {
  entryId: z.int(),
  at: dateTime(),
  actor: z.string(),
  via: z.enum(["page", "api", "command", "coordinator"]),
  action: z.string().describe("Kebab-case, past tense."),
  target: z.string().nullable().describe("Null: all of it."),
  words: z.string(),
  before: z.unknown().describe("Value before; any JSON.").optional(),
  after: z.unknown().describe("Value after; any JSON.").optional(),
  remoteAddress: z.string().nullable(),
});

const mostText = 300;
const text = (title: string, description: string) =>
  z
    .string()
    .trim()
    .max(mostText, `longer than ${mostText} characters`)
    .optional()
    .meta({ title, description });
const day = (title: string, description: string) =>
  z.iso.date("is not a day such as 2026-03-01").optional().meta({ title, description });

const dayMs = 86_400_000;
const { get } = operationsOf<Pick<AuditLog, "list">>();

const audit = get({
  ...{ path: "/api/audit", needs: "audit-read" },
  navigation: { group: "Fleet", order: 62, entry: "Policies", tab: "Audit log" },
  alsoFound: "history who changed",
  summary: "Every change and who made it, the latest first",
  description:
    "Also as CSV: format=csv. An entry has no before or after where there is nothing to show; long values are cut off, secrets omitted.",
  input: z.object({
    actor: text(
      "Actor",
      "Actor: `anna`, `token ci`, `root on db1` (a command), `coordinator`. Whole names only.",
    ),
    action: text("Action", "Action, such as crawler-drained."),
    target: text("Target", "Target: a crawler, `token …`, `release …`."),
    since: day("From (UTC)", "From this day on, UTC."),
    until: day("Through (UTC)", "Through this day, UTC."),
    beforeId: z
      .int()
      .min(1)
      .optional()
      .describe("Only entries before this one: the last of the previous page."),
    limit: z.int().min(1).max(500).default(50).describe("How many."),
  }),
  output: record("AuditLog", {
    entries: z.array(auditEntry),
    more: z.boolean().describe("There are earlier entries."),
  }),
  faults: { 400: "An invalid day, number or text" },
  command: {
    ...{ name: "audit", says: "every change, who made it and how, the latest first" },
    named: { beforeId: "before" },
    help: "\n\nExamples:\n  nearcrawl audit --target athens\n  nearcrawl audit --actor coordinator --since 2026-03-01 --json",
  },
  run: async ({ input: { since, until, ...asked }, ports }) =>
    await ports.list({
      ...asked,
      since: since === undefined ? undefined : new Date(since),
      until: until === undefined ? undefined : new Date(new Date(until).getTime() + dayMs),
    }),
  view: (found, { input }) => ({
    title: "Audit log",
    nodes: [
      lead(
        "Every change, who made it and how, the latest first. “coordinator” marks those that it made by itself.",
      ),
      filters({ names: ["actor", "action", "target", "since", "until"], label: "Filter the log" }),
      table<AuditEntry>({
        ...{ label: "Entries", kind: "audit", rows: found.entries, empty: nothingFound(input) },
        columns: [
          column("entryId", null, ({ entryId }) => entryId),
          column("at", "When", ({ at }) => at, { kind: "nowrap" }),
          column("actor", "Actor", actorCell, { value: ({ actor }) => actor }),
          column("via", null, ({ via }) => via),
          column("remoteAddress", null, ({ remoteAddress }) => remoteAddress),
          column("action", "Action", ({ action }) => action, {
            ...{ kind: "nowrap", link: ({ action }) => pathWith("/audit", { action }) },
          }),
          column("target", "Target", ({ target }) => target ?? small("everything"), {
            ...{ kind: "break", value: ({ target }) => target },
            link: ({ target }) => target && pathWith("/audit", { target }),
          }),
          column("words", "Description", wordsCell, { value: ({ words }) => words }),
          column("before", null, ({ before }) => before !== undefined && JSON.stringify(before)),
          column("after", null, ({ after }) => after !== undefined && JSON.stringify(after)),
        ],
      }),
      onward({
        ...{ next: found.more ? found.entries.at(-1)!.entryId : null, words: "Earlier ones" },
        ...{ name: "beforeId", option: "before", first: "The latest" },
      }),
    ],
  }),
});

export const auditOperations = { audit };

type Asked = Seen<Readonly<Record<string, unknown>>>["input"];

const nothingFound = ({ beforeId, limit, ...narrowed }: Asked) =>
  Object.values(narrowed).some((one) => one !== undefined)
    ? ([
        "No entries match.",
        html`Give whole names: <code>crawler-drained</code>, not <code>drain</code>. <a href="/audit">Show all</a>`,
      ] as const)
    : ([
        "No changes yet.",
        html`Those made on these pages, with a token or with the <code>nearcrawl</code> command appear here.`,
      ] as const);

const viaWords = { page: "page", api: "API", command: "command", coordinator: "by itself" } as const;

const actorCell = ({ actor, via, remoteAddress }: AuditEntry) =>
  html`<a href="${pathWith("/audit", { actor })}">${actor}</a><br>
<span class="small">${viaWords[via]}${remoteAddress && html`, <span class="mono">${remoteAddress}</span>`}</span>`;

function wordsCell({ words, before, after }: AuditEntry): Html {
  const fields = changedFields(before, after);
  const changes = fields.map(
    (one) =>
      html` <dt>${one.field === "" ? "value" : one.field}</dt> <dd>${changeText(one.before, one.after)}</dd>`,
  );
  const count = fields.length === 1 ? "1 value" : `${fields.length} values`;
  return html`<div class="audit-words">${withInstants(words)}${
    fields.length > 0 &&
    html` <details><summary>${count}</summary><dl class="changes">${changes}</dl></details>`
  }</div>`;
}

/** Shows the instants in the text, which are in ISO 8601, as times. */
const withInstants = (words: string) =>
  sentence(words.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, (iso) => instantWords(iso)));

function changeText(before: string | null, after: string | null): Html {
  if (before === null) return html`<ins>${withInstants(after ?? "")}</ins>`;
  if (after === null) return html`<del><span class="hidden">was </span>${before}</del>`;
  return html`<del><span class="hidden">from </span>${before}</del> <span aria-hidden="true">→</span> <ins><span class="hidden">to </span>${after}</ins>`;
}
