/**
 * Exchanges messages with the parent: one outbound POST each, over TLS or on loopback. The parent's certificate is
 * verified by public authorities or by its pinned key. The answer's size is limited, and it is validated.
 */
import type { TLSSocket } from "node:tls";
import { Agent, buildConnector } from "undici";
import {
  type ChildMessage,
  exchangeFault,
  exchangePath,
  maxExchangeBytes,
  type ParentAnswer,
  parentAnswer,
} from "#protocol/exchange";
import { pinOf } from "#protocol/identity";

type ParentReply =
  | { readonly type: "answer"; readonly answer: ParentAnswer }
  | { readonly type: "refused"; readonly words: string }
  | { readonly type: "unreachable"; readonly words: string };

interface ParentRoute {
  /** The parent's address: `https://host[:port]`, or `http://` on loopback. */
  readonly url: string;
  readonly key: string;
  /** SHA-256 of its TLS key (RFC 7469 section 2.4) in base64url. `null` relies on public certificate authorities. */
  readonly certificatePin: string | null;
}

/** Time limit of one exchange, in which the parent writes several thousand rows. */
const exchangeTimeoutMs = 30_000;
const maxWords = 500;

export class HttpParentClient {
  readonly #route: ParentRoute;
  readonly #agent: Agent;
  readonly #timeoutMs: number;

  constructor(route: ParentRoute, timeoutMs: number = exchangeTimeoutMs) {
    this.#route = route;
    this.#timeoutMs = timeoutMs;
    this.#agent = new Agent({ connections: 1, pipelining: 1, connect: connectorFor(route.certificatePin) });
  }

  async exchange(message: ChildMessage): Promise<ParentReply> {
    try {
      const { statusCode, body } = await this.#agent.request({
        origin: new URL(this.#route.url).origin,
        path: `${new URL(this.#route.url).pathname.replace(/\/+$/, "")}${exchangePath}`,
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/json",
          authorization: `Bearer ${this.#route.key}`,
        },
        body: JSON.stringify(message),
        signal: AbortSignal.timeout(this.#timeoutMs),
      });
      return replyOf(statusCode, await boundedText(body));
    } catch (error) {
      return { type: "unreachable", words: wordsOf(error, this.#timeoutMs) };
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

function connectorFor(certificatePin: string | null): buildConnector.connector {
  const connect = buildConnector({ rejectUnauthorized: certificatePin === null, timeout: 10_000 });
  if (certificatePin === null) return connect;
  return (options, done) => {
    connect(options, (error, socket) => {
      if (error) return done(error, null);
      const shown = shownPin(socket as TLSSocket);
      if (shown === certificatePin) return done(null, socket);
      socket.destroy();
      done(new Error(`its TLS key (${shown ?? "none"}) is not the one in parent.certificatePin`), null);
    });
  };
}

function shownPin(socket: TLSSocket): string | null {
  const certificate = socket.getPeerX509Certificate?.();
  return certificate === undefined ? null : pinOf(certificate);
}

async function boundedText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > maxExchangeBytes) throw new Error(`its answer is longer than ${maxExchangeBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** An answer that is not from the parent itself (a proxy's page, a busy server) is retried as if there had been none. */
function replyOf(status: number, text: string): ParentReply {
  const value = jsonOf(text);
  if (status === 200) {
    const checked = parentAnswer.safeParse(value);
    if (checked.success) return { type: "answer", answer: checked.data };
    return { type: "refused", words: `its answer is ${exchangeFault(checked.error)}` };
  }
  const words = messageOf(value) ?? `it answers with status ${status}`;
  const isFinal = status >= 400 && status < 500 && status !== 408 && status !== 429;
  return { type: isFinal ? "refused" : "unreachable", words: words.slice(0, maxWords) };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function messageOf(value: unknown): string | null {
  const message = (value as { error?: { message?: unknown } } | null)?.error?.message;
  return typeof message === "string" && message !== "" ? message : null;
}

function wordsOf(error: unknown, timeoutMs: number): string {
  if (error instanceof Error && error.name === "TimeoutError")
    return `no answer within ${timeoutMs / 1000} s`;
  return error instanceof Error ? error.message || error.name : String(error);
}
