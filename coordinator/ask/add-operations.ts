/** A room's operations on the web server: each as page or form, and under /api/. */

import { z } from "zod";
import { UsageError } from "#core/errors";
import type { Visit } from "../web/access.ts";
import type { Action, ActionFault, AskedAction, Outcome, WebPart } from "../web/actions.ts";
import { routePath } from "../web/api-operation.ts";
import { wantsJson } from "../web/guard.ts";
import type { Html } from "../web/html.ts";
import type { PageError } from "../web/page-frame.ts";
import type { AskedView, Shown } from "../web/views.ts";
import { fieldsIn, meaningOf } from "./fields.ts";
import { documentHtml, formHtml, formPath, labelOf } from "./html-rendering.ts";
import type { AnyOperation, Document } from "./operation.ts";
import { Fault } from "./operation.ts";
import { documentCsv } from "./text-rendering.ts";

export function addOperations<Ports>(
  operations: Readonly<Record<string, AnyOperation>>,
  ports: Ports,
): WebPart {
  return ({ views, actions }) => {
    for (const one of Object.values(operations)) {
      const { page, needs } = one;
      const route = {
        path: page ?? routePath(one),
        ...{ api: routePath(one), needs },
        ...(one.crawlerIn === undefined ? {} : { crawlerIn: one.crawlerIn }),
      };
      if (one.method === "get")
        views.add({
          ...route,
          ...(one.titleWhileSlow === undefined ? {} : { titleWhileSlow: one.titleWhileSlow }),
          view: async (asked) => await looked(one, asked, ports),
        });
      else
        actions.add({
          ...route,
          // What is no operation of the API is for people alone.
          api: one.path.startsWith("/api/") ? route.api : null,
          ...(one.partnersToo === undefined ? {} : { partnersToo: one.partnersToo }),
          ...(one.mostBytes === undefined ? {} : { mostBytes: one.mostBytes }),
          body: one.body!.schema,
          ...(one.fromForm ? { fromForm: one.fromForm } : ofFields(one)),
          act: async (asked) => await done(one, asked, ports),
        });
    }
  };
}

/** Of a form whose fields are those of the body. */
const ofFields = (operation: AnyOperation): Pick<Action<z.ZodType>, "fromForm" | "refill"> => ({
  fromForm: (values) => formBody(operation, values),
  refill: (values, viewer, fault, param) =>
    formAgain({
      ...{ operation, path: namesIn(operation, param), fault, viewer },
      values: { ...values, ...formBody(operation, values) },
    }),
});

/** By the names of its schema: what each text means. */
function formBody({ body }: AnyOperation, values: Readonly<Record<string, string>>): Record<string, unknown> {
  const read = fieldsIn(body!.schema).map((field) => {
    const { name, type, choices } = field;
    // Each choice has a box of its own.
    if (type === "array" && choices !== undefined)
      return [name, choices.filter((one) => values[`${name}-${one}`] !== undefined)] as const;
    return [name, values[name] === undefined ? undefined : meaningOf(field, values[name])] as const;
  });
  return Object.fromEntries(read.filter(([, value]) => value !== undefined));
}

/** Of the path, as its schema has them; null: there can be nothing of this name. */
function inPath(one: AnyOperation, param: (name: string) => string): Record<string, unknown> | null {
  const values: Record<string, unknown> = {};
  for (const [name, text] of Object.entries(namesIn(one, param))) {
    const schema = one.parameters?.path?.[name];
    const [field] = fieldsIn(z.object({ [name]: schema! }));
    const read = schema!.safeParse(meaningOf(field!, text));
    if (!read.success) return null;
    values[name] = read.data;
  }
  return values;
}

async function looked(
  one: AnyOperation,
  asked: AskedView,
  ports: unknown,
): Promise<Shown | PageError | string | null> {
  const { query, visit, now, request } = asked;
  const given = givenIn(one, asked);
  if (given.length === 0 && one.start !== undefined && !wantsJson(request)) {
    const document = one.start({ viewer: visit, now });
    return shownOf(one, document, { status: 200, value: null, asked, query: {} });
  }
  const read = questionIn(one, asked);
  if (read === null || typeof read === "string") return read;
  const { input } = read;
  const isCsv = query("format") === "csv";
  const question = { input, ports, actor: visit.actor, visit, now, isCsv } as const;
  try {
    const value = await one.run({ ...question, via: "api", remoteAddress: request.ip });
    if (value === null) return null;
    const document = one.view!(value, { input, viewer: visit, now });
    const shown = Object.fromEntries(given.map(([field, text]) => [field.name, text]));
    const told = one.told?.(value) ?? value;
    return shownOf(one, document, { status: one.status?.(value) ?? 200, value: told, asked, query: shown });
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    if (!(error instanceof Fault)) throw error;
    const { status, title, message: words, beside } = error;
    return { status, title, words, ...beside };
  }
}

/** The fields of its query that say something. */
const givenIn = ({ parameters }: AnyOperation, { query }: Pick<AskedView, "query">) =>
  fieldsIn(z.object(parameters?.query ?? {}))
    .map((field) => [field, query(field.name).trim()] as const)
    .filter(([, text]) => text !== "");

/** What is asked, once checked. A string: why it cannot be; null: there is nothing of this name. */
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
    body: () => documentHtml(document, { viewer: visit, path, query, operation }),
    ...(csv === null ? {} : { csv }),
    ...(document.refreshSeconds === undefined ? {} : { refreshSeconds: document.refreshSeconds }),
  };
}

/** What stands in the address in place of its names. */
const namesIn = ({ path }: AnyOperation, param: (name: string) => string): Readonly<Record<string, string>> =>
  Object.fromEntries([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => [name!, param(name!)]));

const mostShown = 60;

/** Names field and value of each. */
function faultsIn(issues: readonly z.core.$ZodIssue[], given: (name: string) => string): string {
  const all = issues.slice(0, 5).map((issue) => {
    const {
      path: [first],
    } = issue;
    const message =
      issue.code === "invalid_value" ? `must be one of ${issue.values.join(", ")}` : issue.message;
    const name = String(first);
    const text = given(name).trim();
    const shown = text.length > mostShown ? `${text.slice(0, mostShown)}…` : text;
    return [name, shown, message].filter((part) => part !== "").join(": ");
  });
  return `${all.join("; ")}.`;
}

async function done(one: AnyOperation, asked: AskedAction<unknown>, ports: unknown): Promise<Outcome> {
  const { actor, visit, via, remoteAddress, now } = asked;
  const path = inPath(one, asked.param);
  const names = namesIn(one, asked.param);
  const notKnown = {
    type: "fault",
    status: 404,
    title: "Not known",
    words: "There is nothing of this name.",
  } as const;
  if (path === null) return notKnown;
  const given = { ...(asked.body as object), ...path };
  const typed = { operation: one, path: names, values: asked.body as Readonly<Record<string, unknown>> };
  const [meant] = Object.values(names);
  if (meant !== undefined && !isConfirmed(one, typed.values, { meant, via })) {
    const words = `Nothing was done: to confirm, type ${meant.slice(0, mostShown)}.`;
    return faultOf(new Fault(422, words, "Not confirmed"), typed);
  }
  try {
    const question = { input: given, ports, actor, visit, via, remoteAddress, now, isCsv: false } as const;
    const value = await one.run(question);
    if (value === null) return notKnown;
    const change = one.change?.(value) ?? null;
    const told = one.told?.(value) ?? value;
    const status = (one.status?.(value) ?? Number(Object.keys(one.answers)[0])) as 200 | 201 | 202;
    if (one.view !== undefined && (via === "api" || one.goTo === undefined)) {
      const document = one.view(value, { input: given, viewer: visit, now });
      const { title } = document;
      const around = { path: formPath(one, names), query: {}, operation: one };
      const body = (viewer: Visit) => documentHtml(document, { viewer, ...around });
      return { type: "shown", status, value: told, title, body, document, change };
    }
    const said = one.said?.(value) ?? change?.words ?? `${one.summary}: done.`;
    const goTo = one.goTo?.(value) ?? ((one.page ?? "/").replace(/\/:.*$/, "") || "/");
    return { type: "done", status, value: told, goTo, said, change };
  } catch (error) {
    return faultOf(error, typed);
  }
}

/** What takes work away is done by a page once the name in its address was typed; of a program its request is enough. */
function isConfirmed(
  { body }: AnyOperation,
  { confirmation }: Readonly<Record<string, unknown>>,
  { meant, via }: { readonly meant: string; readonly via: "page" | "api" },
): boolean {
  if (fieldsIn(body!.schema).every(({ name }) => name !== "confirmation")) return true;
  return confirmation === undefined ? via === "api" : String(confirmation).trim() === meant;
}

interface Typed {
  readonly operation: AnyOperation;
  readonly path: Readonly<Record<string, string>>;
  readonly values: Readonly<Record<string, unknown>>;
}

function faultOf(error: unknown, typed: Typed): ActionFault {
  const isUsage = error instanceof UsageError;
  if (!(error instanceof Fault) && !isUsage) throw error;
  const status = error instanceof Fault ? error.status : usageStatus(typed.operation);
  const title = error instanceof Fault ? error.title : "That cannot be done";
  const own = error instanceof Fault ? error.again : undefined;
  if (own !== undefined) {
    const around = { path: formPath(typed.operation, typed.path), query: {}, operation: typed.operation };
    const again = (viewer: Visit) => documentHtml(own(viewer), { viewer, ...around });
    return { type: "fault", status, title, words: error.message, again };
  }
  const hasFields = fieldsIn(typed.operation.body!.schema).some(({ name }) => name !== "confirmation");
  return {
    ...{ type: "fault", status, title, words: error.message },
    ...(status !== 404 && hasFields
      ? { again: (viewer: Visit, fault: string) => formAgain({ ...typed, viewer, fault }) }
      : {}),
  };
}

/** As the operation says: what people can mend is 422 or 409. */
const usageStatus = ({ answers }: AnyOperation) =>
  answers[422] === undefined && answers[409] !== undefined ? 409 : 422;

/** The form once more, with what was typed and what is wrong with it. */
function formAgain({
  operation,
  path,
  values,
  viewer,
  fault,
}: Typed & { readonly viewer: Visit; readonly fault: string }): Html {
  return formHtml({ type: "form", operation, title: labelOf(operation), path, values }, { viewer }, fault);
}
