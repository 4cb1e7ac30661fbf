/** One index of OpenSearch over HTTP: what the side that writes it and the side that asks it share. */
import { Agent, type Dispatcher } from "undici";
import { z } from "zod";
import { retryAfterSeconds } from "../../../core/foreign-dates.ts";

/** Where an index is, and how it lets itself be asked. */
export interface OpenSearchPlace {
  /** Without a path or credentials. */
  readonly origin: string;
  readonly index: string;
  /** The header's value; null if the engine needs none. */
  readonly authorization: string | null;
  /** The authorities that may sign its certificate, in PEM form; null means the public ones. */
  readonly authorities: string | null;
}

export interface OpenSearchAnswer {
  readonly status: number;
  readonly body: unknown;
  /** How long it wants to be left alone; 0 if it does not say. */
  readonly retryAfterMs: number;
}

const connectTimeoutMs = 10_000;
const mostAnswerBytes = 64 * 1024 * 1024;

export class OpenSearchHttp {
  readonly #place: OpenSearchPlace;
  readonly #agent: Agent;

  constructor(
    place: OpenSearchPlace,
    { timeoutMs, connections }: { readonly timeoutMs: number; readonly connections: number },
  ) {
    const { authorities } = place;
    this.#place = place;
    this.#agent = new Agent({
      ...{ connections, headersTimeout: timeoutMs, bodyTimeout: timeoutMs, maxResponseSize: mostAnswerBytes },
      connect: {
        timeout: Math.min(timeoutMs, connectTimeoutMs),
        ...(authorities !== null && { ca: authorities }),
      },
    });
  }

  /** For people, without credentials. */
  get name(): string {
    return `${this.#place.origin}/${this.#place.index}`;
  }

  /** `below` is a path below the index; null means the engine as such. Throws if there is no answer. */
  async ask(
    method: Dispatcher.HttpMethod,
    below: string | null,
    body: string | null = null,
  ): Promise<OpenSearchAnswer> {
    const { origin, index, authorization } = this.#place;
    const path = below === null ? "/" : `/${encodeURIComponent(index)}${below}`;
    // Redirects are not followed: the credentials are for this server only.
    const answer = await this.#agent.request({
      ...{ origin, path, method, body },
      headers: {
        accept: "application/json",
        ...(body !== null && {
          "content-type": path.includes("/_bulk") ? "application/x-ndjson" : "application/json",
        }),
        ...(authorization !== null && { authorization }),
      },
    });
    const text = await answer.body.text();
    const seconds = retryAfterSeconds(answer.headers["retry-after"], new Date()) ?? 0;
    return { status: answer.statusCode, body: parsed(text), retryAfterMs: 1000 * seconds };
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

function parsed(text: string): unknown {
  try {
    return text === "" ? null : JSON.parse(text);
  } catch {
    return text.slice(0, 200);
  }
}

const errorSchema = z.object({ type: z.string().optional(), reason: z.string().optional() });

export function errorWords(error: unknown): string {
  const read = errorSchema.safeParse(error);
  const words = read.success
    ? [read.data.type, read.data.reason].filter(Boolean).join(": ")
    : JSON.stringify(error);
  return (words ?? "no reason is given").replace(/\p{Cc}/gu, " ").slice(0, 300);
}

const failureSchema = z.object({ error: errorSchema });

/** OpenSearch's code for a failure. */
export const errorType = (body: unknown) => failureSchema.safeParse(body).data?.error.type;

/** The status, and the message of OpenSearch or of a proxy in front of it. */
export function statusWords({ status, body }: Pick<OpenSearchAnswer, "status" | "body">): string {
  return `status ${status} ${reasonOf(body)}`.trim();
}

export function reasonOf(body: unknown): string {
  if (typeof body !== "object" || body === null)
    return typeof body === "string" ? errorWords({ reason: body }) : "";
  return errorWords((body as { error?: unknown }).error ?? body);
}

/** Why there is no answer. */
export const causeWords = (error: Error): string =>
  (error.message || String((error as { code?: unknown }).code ?? "") || error.name).slice(0, 300);

const engineSchema = z.object({
  version: z.object({ number: z.string(), distribution: z.string().optional() }),
});

/** From what an engine says of itself: its version, and what else it is than OpenSearch 2 or 3, or null. */
export function engineOf(body: unknown): { readonly version: string; readonly fault: string | null } {
  const { number = "", distribution } = engineSchema.safeParse(body).data?.version ?? {};
  if (distribution === "opensearch" && /^[23]\./.test(number)) return { version: number, fault: null };
  const what = number === "" ? "" : `${distribution ?? "another engine"}, version ${number}: `;
  return { version: number, fault: `${what}not OpenSearch 2 or 3` };
}
