/**
 * WebSub (W3C Recommendation, 23 January 2018), the subscriber's side: what a hub is asked, which of its verifications are
 * answered (section 5.3), and which of its deliveries count (section 7). Of a delivery nothing is kept: a crawler fetches the
 * feed, as it would have later.
 *
 * Departures: a hub is spoken to by https alone, since the secret goes with the request; signatures with SHA-1 do not count,
 * though most hubs of 2018 made no others; nothing is ever unsubscribed: a callback that is gone says 410, and leases end.
 */
import { createHmac, timingSafeEqual } from "node:crypto";

/** What is asked for; section 8.1 calls it a good default. */
export const askedLeaseSeconds = 864_000;

/** A hub that wants to be asked again sooner is not worth it. */
const leastLeaseSeconds = 3600;

/** For us, a longer lease ends here. */
const mostLeaseSeconds = 30 * 86_400;

/** Longest challenge that is sent back. */
const maxChallenge = 512;

/** In order: what a hub is sent. */
export function subscriptionForm(of: {
  readonly callback: string;
  readonly topic: string;
  readonly secret: string;
}): URLSearchParams {
  return new URLSearchParams({
    "hub.callback": of.callback,
    "hub.mode": "subscribe",
    "hub.topic": of.topic,
    "hub.lease_seconds": String(askedLeaseSeconds),
    "hub.secret": of.secret,
  });
}

export const callbackPath = (token: string) => `/websub/${token}`;

export interface AskedSubscription {
  readonly topic: string;
  /** Until then a verification is answered; null: nothing was asked. */
  readonly askedUntil: Date | null;
}

export type HubCall =
  | { readonly type: "verified"; readonly challenge: string; readonly leaseSeconds: number }
  | { readonly type: "denied"; readonly words: string }
  /** It asks for what we did not. */
  | { readonly type: "not-asked" };

export function hubCall(
  query: Readonly<Record<string, string>>,
  { topic, askedUntil }: AskedSubscription,
  now: Date,
): HubCall {
  const mode = query["hub.mode"];
  if (query["hub.topic"] !== topic) return { type: "not-asked" };
  if (mode === "denied") return { type: "denied", words: (query["hub.reason"] ?? "").slice(0, 300) };
  const challenge = query["hub.challenge"] ?? "";
  const leaseText = query["hub.lease_seconds"] ?? "";
  const isAsked = mode === "subscribe" && askedUntil !== null && askedUntil > now;
  if (!isAsked || challenge === "" || challenge.length > maxChallenge) return { type: "not-asked" };
  const leaseSeconds = /^\d{1,15}$/.test(leaseText) ? Number(leaseText) : 0;
  if (leaseSeconds < leastLeaseSeconds) return { type: "not-asked" };
  return { type: "verified", challenge, leaseSeconds: Math.min(mostLeaseSeconds, leaseSeconds) };
}

/** A day before the lease ends, or when a fifth of it is left. */
export function renewAt(leaseSeconds: number, now: Date): Date {
  return new Date(now.getTime() + 1000 * (leaseSeconds - Math.min(86_400, leaseSeconds / 5)));
}

/** In ms, after so many failures in a row: an hour, then twice as long each time, a week at most. */
export const retryMs = (failures: number): number =>
  Math.min(7 * 86_400_000, 3_600_000 * 2 ** Math.max(0, failures - 1));

export const mostFailures = 6;

const methods = ["sha256", "sha384", "sha512"];

/** Whether `X-Hub-Signature` is the body's under our secret. */
export function isSigned(header: string | undefined, body: Buffer, secret: string): boolean {
  const [, method = "", hex = ""] = /^(sha\d+)=([0-9a-f]{1,128})$/i.exec(header ?? "") ?? [];
  if (!methods.includes(method.toLowerCase())) return false;
  const expected = createHmac(method.toLowerCase(), secret).update(body).digest();
  return hex.length === 2 * expected.length && timingSafeEqual(Buffer.from(hex, "hex"), expected);
}
