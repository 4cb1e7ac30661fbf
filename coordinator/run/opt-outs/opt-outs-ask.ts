/** The /fleet/opt-outs page, for operators: what the fleet leaves alone, who asked for it, and the actions for each opt-out. */
import { z } from "zod";
import { mayDo } from "#core/actor";
import type { Change } from "#core/audit";
import { howMany } from "#core/format";
import {
  column,
  form,
  lead,
  note,
  present,
  recordColumns,
  snakeCase,
  table,
  warning,
} from "../../ask/document.ts";
import { type AnyOperation, type Document, Fault, type Form, operationsOf } from "../../ask/operation.ts";
import { dateOr } from "../../web/components.ts";
import { askAbout, countText } from "../../web/format.ts";
import { html, nothing } from "../../web/html.ts";
import { changeOfErasure, confirmationName, confirmationText, erasePageOf, proofFileOf } from "./honour.ts";
import type { OptOutMarks } from "./mark-writes.ts";
import {
  hiddenDays,
  isSaidNumber,
  liftedWords,
  type OptOut,
  type OptOutPreview,
  previewWords,
  readOptOut,
  scopeOf,
  scopeWords,
  stateWords,
  targetText,
  unconfirmedDays,
} from "./opt-out.ts";
import {
  erasedPage,
  fleetOptOut,
  fleetOptOuts as listed,
  optOutPreview,
  optOutScope,
} from "./opt-outs-api.ts";
import type { OptOutStore } from "./store.ts";

interface OptOutPorts {
  readonly optOuts: Pick<OptOutStore, "list" | "request" | "preview" | "confirm" | "lift">;
  readonly marks: OptOutMarks;
}

const { get, post } = operationsOf<OptOutPorts>();

const mostListed = 500;

export const numberInPath = z
  .int()
  .max(2 ** 31 - 1)
  .meta({ description: "As listed.", example: 17 });
const words = z.string().max(1000).default("").describe("Reason.");
const target = z.string().min(1).max(2048);
const removePages = z.int().min(0).optional().meta({
  title: "Pages that go",
  description:
    "So many pages are meant to go, a tenth more or less; needed where the preview says why (wide).",
});

const notOpen = { 404: "There is no open one with this number" };
const tooWide = { 422: "So much goes that removePages has to say how many pages" };
const named = { removePages: "yes-remove" };

/** Throws unless the effect is usual, or the number stated fits the pages affected. */
function refuseUnmeant(preview: OptOutPreview, said: number | undefined): void {
  const { wide, pages } = preview;
  const isSaid = said !== undefined && isSaidNumber(said, pages);
  if (isSaid || (wide === null && said === undefined)) return;
  const why =
    `${wide === null ? "" : `${wide}. `}This takes ${previewWords(preview)}. Nothing was changed. If that ` +
    `is meant, type how many pages go, ${pages} (API: "removePages": ${pages}).`;
  throw new Fault(422, why, "Not confirmed");
}

function opened<One>(one: One | null): One {
  if (one === null) throw new Fault(404, "There is no open opt-out with this number.");
  return one;
}

const goneWords = "is opted out permanently, and its pages are deleted from the index";

function changed(one: OptOut, action: "opted-out" | "opt-out-confirmed" | "opt-out-lifted"): Change {
  const { optOutId, target: of, scope, state, hosts, urls, pages } = one;
  const said =
    action === "opt-out-lifted"
      ? `${of} may be crawled again, after a quarter of an hour; its URLs come due within six hours. ${liftedWords(one)} ` +
        "The form is not believed for it again without proof."
      : `${of} ${goneWords}. It covers ${howMany(hosts, "host")}, ${howMany(urls, "URL")} and ${howMany(pages, "page")}.`;
  return { action, target: of, words: said, after: { optOutId, scope, state, hosts, urls, pages } };
}

const addOptOut = post({
  ...{ path: "/api/fleet/opt-outs", needs: "fleet-write" },
  label: "Add opt-out",
  summary: "Opt a page, a part of a site, a site or a network out, permanently",
  input: z.object({
    target: target.meta({
      title: "Page, site or network",
      description:
        "A site with everything below it, a URL (that page alone; with /* at its end all below it), or a network.",
    }),
    scope: optOutScope.optional().describe("Where the target's form does not say it."),
    ...{ words, removePages },
  }),
  output: fleetOptOut,
  example: { target: "www.example.org", words: "by letter" },
  faults: tooWide,
  command: { name: "opt-outs add", takes: "target", named },
  run: async ({ input, ports: { optOuts }, now }) => {
    const of = readOptOut(input.target, "networks", input.scope ?? null);
    if (typeof of === "string") throw new Fault(400, `target: ${of}`);
    const preview = (await optOuts.preview(of, now))!;
    refuseUnmeant(preview, input.removePages);
    const made = { source: "operator", replyTo: null, requester: null, confirmed: true } as const;
    const optOut = await optOuts.request({ ...made, target: of, words: input.words }, now);
    const { hosts, urls, pages } = preview;
    return { ...optOut, hosts, urls, pages };
  },
  change: (made: OptOut) => changed(made, "opted-out"),
});

const previewHead = { title: "Opt-out preview", above: [["Opt-outs", "/fleet/opt-outs"]] } as const;

const previewForm = (more: Partial<Form>) =>
  form({ operation: previewOptOut, label: "Show what it covers", without: ["scope"], ...more });

const askedAgain = (more: Partial<Form>): Document => ({
  ...previewHead,
  nodes: [previewForm({ title: "", ...more })],
});

const previewOptOut: AnyOperation = get({
  ...{ path: "/api/fleet/opt-outs/preview", needs: "fleet-read" },
  summary: "What an opt-out would cover, in numbers",
  input: z.object({
    target: target.meta({
      title: "Page, site or network",
      description: `www.example.org (with everything below it), https://www.example.org/page (that page alone),
https://www.example.org/part/* (with what is below it), https://www.example.org/* (that host alone), or 192.0.2.0/24.`,
      example: "https://www.example.org/a/*",
    }),
    scope: optOutScope.optional(),
  }),
  output: optOutPreview,
  faults: { 400: "The target or the scope names nothing" },
  command: {
    ...{ name: "opt-outs preview", takes: "target" },
    says: "what an opt-out would cover: hosts, pages, URLs and how many of them are due",
  },
  run: async ({ input, ports: { optOuts }, now }) => {
    const of = readOptOut(input.target, "networks", input.scope ?? null);
    if (typeof of === "string") {
      const again = () => askedAgain({ values: { target: input.target }, fault: of });
      throw Object.assign(new Fault(400, `target: ${of}`), { again });
    }
    return { target: targetText(of), scope: scopeOf(of), ...(await optOuts.preview(of, now))! };
  },
  start: () => askedAgain({}),
  view: (preview, { input }) => {
    const { target: of, scope, wide, pages, known } = preview;
    const already =
      known === null ? "" : ` It has opted out already (no. ${known.optOutId}, ${stateWords(known)}).`;
    const toBeTyped = html`To confirm, type how many pages go: <strong>${pages}</strong>`;
    return {
      ...previewHead,
      nodes: present([
        lead(`The ${scopeWords[scope]} ${of}: ${previewWords(preview)}.${already}`),
        wide !== null && warning(`${wide}.`),
        form({
          ...{ operation: addOptOut, title: "", values: { target: input.target, scope } },
          without: ["target", "scope", ...(wide === null ? ["removePages"] : [])],
          ...(wide === null ? {} : { words: toBeTyped }),
        }),
      ]),
    };
  },
});

const erasePage = post({
  ...{ path: "/api/fleet/opt-outs/erase", needs: "fleet-write" },
  label: "Erase page",
  summary: "Erase one page from database, index and exports, and opt its URL out",
  description:
    "Its texts, links, visits and history go, what other pages call it, and what crawlers have in " +
    "their spools. Exports delete it with the change feed. The audit log says what went where, and " +
    "names the page by its host and the SHA-256 of its URL.",
  input: z.object({ url: target.describe("URL of the page."), words }),
  output: erasedPage,
  example: { url: "https://www.example.org/jane", words: "request of 3 March" },
  command: {
    ...{ name: "opt-outs erase", takes: "url" },
    says: "erase what is kept of one page from database, index and exports, and opt its URL out; the audit log says what went where",
    follows: "what is kept of it goes, and its URL is opted out. This cannot be undone.",
  },
  run: async ({ input, ports, now }) => {
    const erased = await erasePageOf(ports, input, now);
    if (typeof erased === "string") throw new Fault(400, `target: ${erased}`);
    return erased;
  },
  change: changeOfErasure,
});

const confirmOptOut = post({
  ...{ path: "/api/fleet/opt-outs/{number}/confirm", needs: "fleet-write" },
  summary: "Confirm an opt-out: it becomes permanent",
  input: z.object({ number: numberInPath, removePages }),
  output: fleetOptOut,
  example: {},
  faults: { ...notOpen, ...tooWide },
  command: {
    ...{ name: "opt-outs confirm", named },
    says: "confirm an opt-out: it becomes permanent, and its pages are deleted from the index",
  },
  run: async ({ input, ports: { optOuts }, now }) => {
    refuseUnmeant(opened(await optOuts.preview(input.number, now)), input.removePages);
    return opened(await optOuts.confirm(input.number, "operator", now));
  },
  change: (confirmed: OptOut) => changed(confirmed, "opt-out-confirmed"),
});

const liftOptOut = post({
  ...{ path: "/api/fleet/opt-outs/{number}/lift", needs: "fleet-write" },
  summary: "Lift an opt-out",
  input: z.object({ number: numberInPath, words }),
  output: fleetOptOut,
  example: { words: "the owner did not request it" },
  faults: notOpen,
  command: {
    name: "opt-outs lift",
    says: "lift an opt-out; crawling resumes after a quarter of an hour, and its URLs come due within six hours",
  },
  run: async ({ input, ports, now }) => opened(await ports.optOuts.lift(input.number, input.words, now)),
  change: (lifted: OptOut) => changed(lifted, "opt-out-lifted"),
});

/** A link to the list, with or without ended opt-outs. */
export const allOrFew = (path: string, isAll: boolean, [few, all]: readonly [few: string, all: string]) =>
  note(html`<a href="${isAll ? path : `${path}?all=yes`}">${isAll ? few : all}</a>`);

const fleetOptOuts = get({
  ...{ path: "/api/fleet/opt-outs", needs: "fleet-read" },
  navigation: { group: "Sites", order: 60, entry: "Opt-outs", tab: "Opt-outs" },
  alsoFound: "block exclude site",
  summary: "Pages, sites and networks that have opted out, the latest first",
  input: z.object({ all: z.enum(["yes"]).optional().describe("yes: also what was lifted or has lapsed.") }),
  output: listed,
  command: {
    name: "opt-outs list",
    says: "what has opted out, by whom, since when, and how much of it is in the frontier and the index",
    group: {
      says: "pages, sites and networks that no crawler sends requests to: list, add, confirm, lift, erase",
      help: `

A running coordinator honours a change at once: it assigns nothing more. Crawlers stop within a minute; those of
release 0.2.0 do not hear of a part of a site, and finish the slice of pages that they have.

What opts out is its scope, which the target says: a URL is that page alone, in all its spellings, by http and
https; a URL with /* at its end is that page with what is below it, by whole path segments; https://HOST/* is one
host; a name, or a URL of a front page, is a site with everything below its name; and a range is a network. --scope
says otherwise. Much (more than two hosts or 100 pages, a public suffix, a network larger than a /16 or an IPv6 /29)
takes --yes-remove and the number of pages that go, which the refusal names; a tenth off counts as the same, since
pages come and go.

Examples:
  nearcrawl opt-outs preview 'https://www.example.org/members/*'
  nearcrawl opt-outs add https://www.example.org/members/jane
  nearcrawl opt-outs add www.example.org --words 'by letter of 3 March'
  nearcrawl opt-outs add 192.0.2.0/24 --yes-remove 1204
  nearcrawl opt-outs erase https://www.example.org/members/jane
  nearcrawl opt-outs lift 17 --words 'the owner did not request it'`,
    },
  },
  run: async ({ input, ports }) => ({
    optOuts: await ports.optOuts.list({ open: input.all === undefined, most: mostListed }),
  }),
  view: ({ optOuts: rows }, { input, viewer }) => {
    const byForm = html`<a href="/about-crawler#opt-out">form</a>`;
    const waiting = rows.filter(({ state }) => state === "waiting").length;
    return {
      title: "Opt-outs",
      nodes: present([
        lead(html`Pages, parts of sites, sites and networks that no crawler sends requests to. A request by the ${byForm} is
honoured at once: its pages are hidden, after ${hiddenDays} days deleted, and it lapses after ${unconfirmedDays} unless the
site proves it by DNS or a file, or an operator confirms it; then its pages are deleted at once. Lifting it in the first
${hiddenDays} days shows them again, and the form is not believed for it a second time.`),
        waiting > 0 &&
          warning(`${countText(waiting)} ${waiting === 1 ? "waits" : "wait"} for proof or for an operator: many came in
one day, many hosts or pages would go, or an operator lifted the like before.`),
        allOrFew("/fleet/opt-outs", input.all !== undefined, ["In force only", "Include lifted and lapsed"]),
        table<OptOut>({
          ...{ label: "Opt-outs", rows },
          empty: [
            "No site or network has opted out.",
            html`Webmasters opt out by the ${byForm}; operators add one below.`,
          ],
          columns: [
            column("target", "What", whatOptedOut, { more: howToProve, value: ({ target: of }) => of }),
            column("opt_out", "No.", ({ optOutId }) => optOutId, { kind: "number" }),
            column("state", "State", stateWords, { more: sinceAndUntil, value: ({ state }) => state }),
            column("hosts", "Hosts", ({ hosts }) => hosts, { unit: "count" }),
            column("urls", "URLs", ({ urls }) => urls, { unit: "count" }),
            column("pages", "Pages", ({ pages }) => pages, { unit: "count" }),
            column("from", "From", ({ requester, source }) => requester ?? source, {
              more: ({ replyTo, words: said, endingWords }) =>
                [replyTo, said, endingWords].filter(Boolean).join(" · "),
            }),
            ...recordColumns<OptOut>(
              ["scope", "createdAt", "inForceAt", "lapsesAt", "endedAt", "replyTo", "words"],
              snakeCase,
            ),
          ],
          actions: ({ optOutId, state }) => {
            if (state === "lifted" || state === "lapsed") return [];
            const path = { number: optOutId };
            const confirm = { operation: confirmOptOut, path, label: `Confirm no. ${optOutId}` };
            const lift = { operation: liftOptOut, path, label: `Lift no. ${optOutId}` };
            return state === "confirmed" ? [lift] : [confirm, lift];
          },
        }),
        mayDo(viewer.actor, "fleet-write") &&
          previewForm({
            title: "Add an opt-out",
            words: "In force until it is lifted; its pages are deleted from the index.",
          }),
        form({
          ...{ operation: erasePage, title: "Erase a page" },
          words: `What is kept of this one page goes: its text, links, visits and history, in exports and at crawlers, too.
Its URL is opted out. This cannot be undone.`,
        }),
      ]),
    };
  },
});

const whatOptedOut = ({ scope, target: of, erasedAt }: OptOut) =>
  html`${scope === "prefix" || scope === "host" ? of : askAbout(of)}<span
class="small"> ${scopeWords[scope]}${erasedAt === null ? "" : ", erased"}</span>`;

function howToProve({ state, site, token }: OptOut) {
  if (site === null || (state !== "waiting" && state !== "unconfirmed")) return nothing;
  const record = `${confirmationName(site)} TXT "${confirmationText(token)}"`;
  return html`<span class="break">proved by ${record} or that text at ${proofFileOf(site)}</span>`;
}

function sinceAndUntil({ createdAt, lapsesAt, endedAt }: OptOut) {
  const until = endedAt === null ? dateOr(lapsesAt, "it is lifted") : dateOr(endedAt, "");
  return html`since ${dateOr(createdAt, "")}<br>until ${until}`;
}

export const optOutOperations = {
  ...{ fleetOptOuts, addOptOut, previewOptOut, erasePage, confirmOptOut, liftOptOut },
};
