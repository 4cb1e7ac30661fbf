/** The page that a form was sent from, which is shown again with what is wrong with the form. */
import type { FastifyRequest } from "fastify";
import { mayDo } from "#core/actor";
import { canParseUrl } from "#core/ip/url-host";
import type { Visit } from "../web/access.ts";
import { holdsRefused, type Refused } from "./html-rendering.ts";
import type { AnyOperation } from "./operation.ts";
import { looked } from "./questions.ts";
import { type Shown, sentText } from "./views.ts";

interface FormPage {
  readonly shown: Shown;
  /** With its query. */
  readonly path: string;
}

/** Null: it was sent from elsewhere, or from a page that does not show the form (any more). */
export type FormSender = (
  request: FastifyRequest,
  refused: Refused,
  by: { readonly visit: Visit; readonly now: Date },
) => Promise<FormPage | null>;

/** The browser names the page in `Referer`. Its rights are checked as for everybody who opens it. */
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

/** What stands in the address, by the names in the page's path; null: it is not the page's address. */
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
