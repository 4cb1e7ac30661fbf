/** What the header of an answer says already: the outcome, or that the body is to be read. */
import type { FetchOutcome } from "#protocol/result";
import { Failure } from "../net/failure.ts";
import type { SiteAnswer } from "./exchange.ts";
import { outcomeOfFailure } from "./failure-outcome.ts";
import { redirectTarget } from "./redirect-target.ts";
import { judgeHeader } from "./wanted-type.ts";

export interface AskedPage {
  readonly url: string;
  readonly redirects: number;
  /** Validators went with the request. */
  readonly conditional: boolean;
}

export interface HeaderSaid {
  readonly contentType: string;
  readonly retryAfterSeconds: number | null;
}

/** Null: the body is to be read. */
export function outcomeOfHeader(
  answer: SiteAnswer,
  page: AskedPage,
  { contentType, retryAfterSeconds }: HeaderSaid,
): FetchOutcome | null {
  const { status, headers } = answer;
  if (status === 304 && page.conditional) return { type: "unchanged", status };
  const target = redirectTarget({ status, location: headers.location }, page);
  if (typeof target === "string") return { type: "redirected", status, location: target };
  if (target !== null) return outcomeOfFailure(target);
  if (status < 200 || status >= 300) return { type: "http-error", status, retryAfterSeconds };
  const unsupported = { type: "unsupported", status, contentType: contentType.slice(0, 200) } as const;
  if (status === 204 || status === 205) return unsupported;
  if (status === 206 && partOf(answer) === "other") {
    const words = "a part of the page, which was not asked for (status 206)";
    return outcomeOfFailure(new Failure("bad-response", words));
  }
  return judgeHeader(contentType, headers) === "leave" ? unsupported : null;
}

/**
 * What a 206 holds (RFC 9110 section 14.4), though no part was asked for: all of the page, its beginning, or
 * something else. Any other answer is whole.
 */
export function partOf({
  status,
  headers,
}: Pick<SiteAnswer, "status" | "headers">): "whole" | "start" | "other" {
  if (status !== 206) return "whole";
  const range = /^\s*bytes\s+(\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)\s*$/i.exec(
    String(headers["content-range"]),
  );
  if (range === null || Number(range[1]) !== 0) return "other";
  return Number(range[2]) + 1 === Number(range[3]) ? "whole" : "start";
}
