/**
 * Every status by which the server says that it did not do what it was asked, and what that means to whoever asked: the one
 * list that errors are answered from (`sendError`), and that the API's page shows. The message beside it says the particular.
 */

export interface ApiErrorKind {
  /** As HTTP calls it (RFC 9110 section 15.5). */
  readonly title: string;
  readonly means: string;
  readonly advice: string;
}

const asIs = "Change the request; the same one is refused again.";
const later = "Wait as long as Retry-After says, then send the same request.";

export const apiErrors = {
  400: {
    title: "Bad request",
    means: "A parameter or the body is not what the operation takes.",
    advice: asIs,
  },
  401: {
    title: "Unauthorized",
    means: "A token is needed, or the one that was sent is unknown, expired or revoked.",
    advice: "Send Authorization: Bearer with a good token.",
  },
  403: {
    title: "Forbidden",
    means: "The token is good, but its scopes do not allow this.",
    advice: "Use a token with the scope that the message names.",
  },
  404: { title: "Not found", means: "Nothing is at this address, or nothing has this name.", advice: asIs },
  405: {
    title: "Method not allowed",
    means: "The address does not take this method.",
    advice: "Use the method that the operation states.",
  },
  409: {
    title: "Conflict",
    means:
      "It cannot be done as things stand now: another job is running, a name is taken, values have changed.",
    advice: "Read the current state, then decide again.",
  },
  410: {
    title: "Gone",
    means: "It was here and is not kept any more, such as an old cursor of the change feed.",
    advice: "Start over from what the answer names.",
  },
  413: { title: "Content too large", means: "The body is larger than the operation takes.", advice: asIs },
  414: { title: "URI too long", means: "A part of the address is longer than any name is.", advice: asIs },
  415: {
    title: "Unsupported media type",
    means: "The body is not of the type that the operation takes.",
    advice: "Send application/json, with that Content-Type.",
  },
  422: {
    title: "Unprocessable content",
    means: "The request is well formed, but its values do not fit each other or what there is.",
    advice: asIs,
  },
  429: {
    title: "Too many requests",
    means: "Too many requests, or too many failures, came from this address.",
    advice: later,
  },
  500: {
    title: "Internal server error",
    means: "The fault is the coordinator's; its log has the cause.",
    advice: "Try again later; report it if it stays.",
  },
  503: {
    title: "Service unavailable",
    means: "The coordinator is busy, starting, or its database does not answer.",
    advice: later,
  },
} as const satisfies Readonly<Record<number, ApiErrorKind>>;

export type ErrorStatus = keyof typeof apiErrors;

/** Of what a library says: one of ours, or that the request is a bad one. */
export function errorStatus(status: number): ErrorStatus {
  return status in apiErrors ? (status as ErrorStatus) : 400;
}
