/** Reads the question in a URL, and decides what is shown of the answer. */

import type { FastifyRequest } from "fastify";
import type { z } from "zod";
import { mayDo } from "#core/actor";
import { UsageError } from "#core/errors";
import { canParseUrl } from "#core/ip/url-host";
import type { Visit } from "../web/access.ts";
import { wantsJson } from "../web/guard.ts";
import { nothing } from "../web/html.ts";
import { requesterOf } from "../web/limits.ts";
import type { PageError } from "../web/page-frame.ts";
import { fieldsIn, issueWords, meaningOf } from "./fields.ts";
import { documentHtml, formPath, holdsRefused, type Refused } from "./html-rendering.ts";
import { type AnyOperation, type Document, Fault } from "./operation.ts";
import { documentCsv, paperOf } from "./text-rendering.ts";
import { type AskedView, type Shown, sentText } from "./views.ts";

/** Returns the values of the path, checked by its schema, or null if no such name can exist. */
export function inPath(one: AnyOperation, param: (name: string) => string): Record<string, unknown> | null {
  const values: Record<string, unknown> = {};
  for (const [name, text] of Object.entries(namesIn(one, param))) {
    const schema = one.parameters?.path?.[name];
    const field = fieldsIn(one.input).find((own) => own.name === name);
    const read = schema!.safeParse(meaningOf(field!, text));
    if (!read.success) return null;
    values[name] = read.data;
  }
  return values;
}

export async function looked(
  one: AnyOperation,
  asked: AskedView,
  ports: unknown,
): Promise<Shown | PageError | string> {
  const { query, visit, now, request } = asked;
  const given = givenIn(one, asked);
  if (given.length === 0 && one.start !== undefined && !wantsJson(request)) {
    const document = one.start({ viewer: visit, now });
    return shownOf(one, document, { status: 200, value: null, asked, query: {} });
  }
  const read = questionIn(one, asked);
  if (read === null) return notKnown(one, asked.param);
  if (typeof read === "string") return read;
  const { input } = read;
  const isCsv = query("format") === "csv";
  const question = { input, ports, actor: visit.actor, visit, now, isCsv } as const;
  try {
    const value = await one.run({
      ...question,
      via: "api",
      remoteAddress: request.ip,
      requester: requesterOf(request),
    });
    if (value === null) return notKnown(one, asked.param);
    const told = one.told?.(value) ?? value;
    const status = one.status?.(value) ?? 200;
    // A JSON client needs no document. A command does, because the document says whether anything was found.
    const isForProgram = wantsJson(request) && paperOf(request) === null && !isCsv && !visit.isOwner;
    if (isForProgram) return { status, value: told, title: "", body: () => nothing };
    const document = one.view!(value, { input, viewer: visit, now });
    const shown = Object.fromEntries(given.map(([field, text]) => [field.name, text]));
    return shownOf(one, document, { status, value: told, asked, query: shown });
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    if (!(error instanceof Fault)) throw error;
    const { status, title, message: words, beside, again } = error;
    if (again !== undefined && !wantsJson(request))
      return shownOf(one, again(visit), { status, value: null, asked, query: {} });
    return { status, title, words, ...beside };
  }
}

/** Returns the fields of the query that were sent with a value, and their texts. */
const givenIn = ({ input, parameters }: AnyOperation, { query }: Pick<AskedView, "query">) =>
  fieldsIn(input)
    .filter(({ name }) => parameters?.query?.[name] !== undefined)
    .map((field) => [field, query(field.name).trim()] as const)
    .filter(([, text]) => text !== "");

/** Returns the checked question, a string that says why it is impossible, or null if no such name can exist. */
export function questionIn(
  operation: AnyOperation,
  asked: Pick<AskedView, "query" | "param">,
): { readonly input: unknown } | string | null {
  const path = inPath(operation, asked.param);
  if (path === null) return null;
  const given = givenIn(operation, asked).map(([field, text]) => [field.name, meaningOf(field, text)]);
  const read = operation.input.safeParse({ ...path, ...Object.fromEntries(given) });
  return read.success ? { input: read.data } : faultsIn(read.error.issues, asked.query);
}

interface Answered {
  readonly status: number;
  readonly value: unknown;
  readonly asked: AskedView;
  readonly query: Readonly<Record<string, string>>;
}

function shownOf(
  operation: AnyOperation,
  document: Document,
  { status, value, asked, query }: Answered,
): Shown {
  const { visit, param } = asked;
  const path = formPath(operation, namesIn(operation, param));
  const csv = documentCsv(document);
  return {
    ...{ status, value, title: document.title, document },
    body: (_, refused) =>
      documentHtml(document, { viewer: visit, path, query, operation, ...(refused && { refused }) }),
    ...(csv === null ? {} : { csv }),
    ...(document.refreshSeconds === undefined ? {} : { refreshSeconds: document.refreshSeconds }),
  };
}

/** Returns the texts in the URL, by their names in the operation's path. */
export const namesIn = (
  { path }: AnyOperation,
  param: (name: string) => string,
): Readonly<Record<string, string>> =>
  Object.fromEntries([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => [name!, param(name!)]));

export const mostShown = 60;

/** Returns the operation's own "not found" words with the text from the URL. */
export function notKnown(one: AnyOperation, param: (name: string) => string): PageError {
  const says = one.answers[404]?.description ?? "There is nothing of this name";
  const names = Object.values(namesIn(one, param)).join(" ");
  const words = names === "" ? `${says}.` : `${says}: ${names.slice(0, mostShown)}.`;
  return { status: 404, title: "Not known", words };
}

/** Names the field and value of each fault. */
function faultsIn(issues: readonly z.core.$ZodIssue[], given: (name: string) => string): string {
  const all = issues.slice(0, 5).map((issue) => {
    const {
      path: [first],
    } = issue;
    const name = String(first);
    const text = given(name).trim();
    const shown = text.length > mostShown ? `${text.slice(0, mostShown)}…` : text;
    return [name, shown, issueWords(issue)].filter((part) => part !== "").join(": ");
  });
  return `${all.join("; ")}.`;
}

interface FormPage {
  readonly shown: Shown;
  /** The path with its query. */
  readonly path: string;
}

/** Finds the page that a form was sent from, to show it again. Returns null if no page of ours still shows the form. */
export type FormSender = (
  request: FastifyRequest,
  refused: Refused,
  by: { readonly visit: Visit; readonly now: Date },
) => Promise<FormPage | null>;

/** The browser names the page in `Referer`. The right to see it is checked as for anybody who opens it. */
export function formSender(operations: readonly AnyOperation[], ports: unknown): FormSender {
  const pages = operations.filter(({ method, page }) => method === "get" && page != null);
  return async (request, refused, { visit, now }) => {
    const { referer, host } = request.headers;
    const from = canParseUrl(referer ?? "") ? new URL(referer!) : null;
    if (from === null || from.host !== host) return null;
    for (const operation of pages) {
      const params = paramsIn(operation.page!, from.pathname);
      if (params === null || !mayLook(operation, params, visit)) continue;
      const query = (name: string) => sentText(from.searchParams.get(name) ?? "");
      const param = (name: string) => params[name] ?? "";
      const shown = await looked(operation, { request, visit, now, param, query }, ports);
      if (typeof shown === "string" || !("body" in shown)) continue;
      if (holdsRefused(shown.document?.nodes ?? [], refused))
        return { shown, path: from.pathname + from.search };
    }
    return null;
  };
}

function mayLook(
  { needs, crawlerIn }: AnyOperation,
  params: Readonly<Record<string, string>>,
  { actor }: Visit,
): boolean {
  const crawler = crawlerIn === undefined ? undefined : params[crawlerIn];
  return mayDo(actor, needs, crawler === undefined ? null : { crawler, partnersToo: true });
}

/** Returns the values in the path, by the names in the page's path, or null if it is another page's. */
function paramsIn(page: string, path: string): Record<string, string> | null {
  const [names, parts] = [page.split("/"), path.split("/")];
  if (names.length !== parts.length) return null;
  const params: Record<string, string> = {};
  for (const [at, name] of names.entries()) {
    const part = parts[at]!;
    if (!name.startsWith(":") && name !== part) return null;
    if (name.startsWith(":")) params[name.slice(1)] = decoded(part);
  }
  return params;
}

function decoded(part: string): string {
  try {
    return sentText(decodeURIComponent(part));
  } catch {
    return part;
  }
}
