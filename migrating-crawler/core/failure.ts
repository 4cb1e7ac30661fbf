/**
 * Describes why a connection or request failed: a stable code, the party to blame, and a message. `net` and `fetch` throw this
 * error and turn it into a recorded outcome at their boundary.
 */
import { type Challenge, challengeWords } from "#protocol/bot-gate";
import type { FetchOutcome } from "#protocol/result";

type Blame = Extract<FetchOutcome, { type: "failed" }>["blame"];

const blameOf = {
  "dns-no-such-name": "target",
  "dns-no-answer": "network",
  "refused-address": "target",
  /** A 5xx or 429 answer to robots.txt forbids every URL for the time being (RFC 9309). */
  "robots-closed": "target",
  /** A bot gate answered the request for the page or for robots.txt. */
  challenged: "target",
  /** The target is on the partner's deny-list. Another crawler may fetch it. */
  "not-allowed": "crawler",
  "connect-refused": "target",
  "connect-unreachable": "network",
  "connect-timeout": "network",
  "connection-lost": "network",
  proxy: "crawler",
  tls: "target",
  "first-byte-timeout": "target",
  "idle-timeout": "target",
  "total-timeout": "target",
  "headers-too-large": "target",
  "bad-response": "target",
  "bad-encoding": "target",
  "decompression-bomb": "target",
  "too-slow": "target",
  "bad-redirect": "target",
  "redirect-loop": "target",
  "too-many-redirects": "target",
  /** If a page cannot be extracted in time, the software is to blame, whatever the page. */
  "extraction-failed": "us",
  "extraction-timeout": "us",
  stopped: "crawler",
  /** A limit of the crawler's host stopped the request. The target may be asked later. */
  "held-back": "crawler",
  internal: "us",
} as const satisfies Readonly<Record<string, Blame>>;

export type FailureCode = keyof typeof blameOf;

export class Failure extends Error {
  readonly code: FailureCode;
  readonly blame: Blame;
  readonly address: string | null;
  readonly challenge: Challenge | null;

  constructor(
    code: FailureCode,
    reason: string,
    options?: ErrorOptions & { address?: string | null; challenge?: Challenge },
  ) {
    super(reason, options);
    this.name = "Failure";
    this.code = code;
    this.blame = blameOf[code];
    this.address = options?.address ?? null;
    this.challenge = options?.challenge ?? null;
  }
}

export const challenged = (challenge: Challenge): Failure =>
  new Failure("challenged", challengeWords(challenge), { challenge });

/** Maps socket and TLS errors by their code. An unknown error counts as a fault of this software. */
export function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error;
  const { code, message } = describe(error);
  if (code === "ECONNREFUSED") return new Failure("connect-refused", message, { cause: error });
  if (code === "ETIMEDOUT") return new Failure("connect-timeout", message, { cause: error });
  if (unreachable.has(code)) return new Failure("connect-unreachable", message, { cause: error });
  if (code === "UND_ERR_SOCKET" && /^bad (response|upgrade)$/.test(message)) {
    return new Failure("bad-response", "an answer that nothing asked for", { cause: error });
  }
  if (lost.has(code)) return new Failure("connection-lost", message, { cause: error });
  if (
    /^(ERR_TLS|ERR_SSL|CERT_|CRL_|UNABLE_TO|SELF_SIGNED|DEPTH_ZERO|ERR_OSSL|HOSTNAME_MISMATCH|INVALID_)|EPROTO/.test(
      code,
    )
  ) {
    return new Failure("tls", `${code}: ${message}`, { cause: error });
  }
  if (code === "UND_ERR_HEADERS_OVERFLOW" || code === "HPE_HEADER_OVERFLOW") {
    return new Failure("headers-too-large", "the response header is larger than we read", { cause: error });
  }
  if (code.startsWith("ERR_HTTP2")) {
    return new Failure("bad-response", `HTTP/2: ${message}`, { cause: error });
  }
  if (isParserError(error) || code.startsWith("UND_ERR_RES") || code === "UND_ERR_INVALID_ARG") {
    return new Failure("bad-response", `not a valid HTTP response: ${message}`, { cause: error });
  }
  return new Failure("internal", `${code} ${message}`.trim(), { cause: error });
}

const isParserError = (error: unknown) => error instanceof Error && error.name === "HTTPParserError";

const unreachable = new Set(["EHOSTUNREACH", "ENETUNREACH", "EADDRNOTAVAIL", "EACCES", "ENETDOWN"]);
const lost = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET", "UND_ERR_CLOSED", "UND_ERR_DESTROYED"]);

function describe(error: unknown): { readonly code: string; readonly message: string } {
  if (!(error instanceof Error)) return { code: "", message: String(error) };
  const code = (error as { code?: unknown }).code;
  return { code: typeof code === "string" ? code : "", message: error.message };
}
