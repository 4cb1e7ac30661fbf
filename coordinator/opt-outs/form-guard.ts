/**
 * What a form for everybody is protected by. There is nothing to forge (no cookie, no account), so the danger is
 * abuse: floods of one address, programs that fill in every form, other sites that make their visitors send it.
 */
import type { FastifyRequest } from "fastify";
import { LRUCache } from "lru-cache";
import { isFromElsewhere, originOf, requesterOf } from "../web/limits.ts";
import { sentText } from "../web/views.ts";
import { fieldLengths, trapField } from "./contact-forms.ts";

/** Forms of one address (or IPv6 /64) in an hour. */
export const formsPerHour = 10;
const hourMs = 3_600_000;
const rememberedAddresses = 20_000;
/** All fields together, encoded. */
export const maxFormBytes = 16 * 1024;

export interface ReadForm {
  readonly values: Readonly<Record<string, string>>;
  /** Why it is not taken, with the status to answer; null: it may be. */
  readonly fault: { readonly status: number; readonly words: string } | null;
  /** Where it came from; null: not known. */
  readonly requester: string | null;
}

export class FormGuard {
  readonly #now: () => number;
  readonly #sent = new LRUCache<string, { count: number; readonly sinceMs: number }>({
    max: rememberedAddresses,
  });

  /** `now` in ms, monotonic. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** `required`: names of fields without which the form says nothing. */
  read(request: FastifyRequest, required: Readonly<Record<string, string>>): ReadForm {
    const values = valuesOf(typeof request.body === "string" ? request.body : "");
    const requester = requesterOf(request);
    const fault = this.#faultOf(request, values, required, requester);
    return { values, fault, requester };
  }

  #faultOf(
    request: FastifyRequest,
    values: ReadForm["values"],
    required: Readonly<Record<string, string>>,
    requester: string | null,
  ): ReadForm["fault"] {
    if (isFromElsewhere(request))
      return { status: 403, words: "This form was sent from another site's page." };
    if ((values[trapField] ?? "") !== "")
      return {
        status: 400,
        words: "A field was filled in that people do not see. Leave it empty and send again.",
      };
    for (const [name, words] of Object.entries(required)) {
      if ((values[name] ?? "").trim() === "") return { status: 400, words };
    }
    for (const [name, most] of Object.entries(fieldLengths)) {
      if ((values[name] ?? "").length > most)
        return { status: 400, words: `A text is longer than ${most} characters.` };
    }
    if (!this.#mayCome(requester)) {
      const words = `More than ${formsPerHour} forms came from your address within an hour. Try again later, or write to us.`;
      return { status: 429, words };
    }
    return null;
  }

  #mayCome(requester: string | null): boolean {
    const origin = requester === null ? "unknown" : originOf(requester);
    const before = this.#sent.get(origin);
    const isFresh = before !== undefined && this.#now() - before.sinceMs < hourMs;
    const count = isFresh ? before.count + 1 : 1;
    this.#sent.set(origin, { count, sinceMs: isFresh ? before.sinceMs : this.#now() });
    return count <= formsPerHour;
  }
}

/** The first of each name; line ends as typed on any system become one. */
function valuesOf(body: string): Record<string, string> {
  const values: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(body))
    values[name] ??= sentText(value.replaceAll("\r\n", "\n"));
  return values;
}
