/** Sign-in: a link is issued to a person, and whoever opens it first gets a session. */

import {
  linkMinutes,
  type Secrets,
  type Session,
  type SignInLinkStore,
  sessionMs,
  type Whence,
} from "#core/access-types";
import type { Person } from "#core/actor";
import type { Change } from "#core/audit";
import { UsageError } from "#core/errors";

export interface LinkRequest extends Person {
  readonly minutes: number;
  readonly issuedBy: string;
}

export interface IssuedLink extends Person {
  readonly linkId: number;
  /** Shown only once, because the secret is stored only as a hash. */
  readonly url: string;
  readonly expiresAt: Date;
}

const linkPrefix = "ncl_";
const sessionPrefix = "ncs_";
const minuteMs = 60_000;
/** For example anna or anna.k@example.org. Other actors in the audit log have a space in their names or are reserved below. */
const personName = /^[\p{L}\p{N}][\p{L}\p{N}._@+-]{0,62}$/u;
const takenNames = new Set(["anybody", "coordinator"]);
export const mostCrawlersOfPartner = 50;

interface LinkPorts {
  readonly links: Pick<SignInLinkStore, "issue">;
  readonly secrets: Secrets;
  readonly webUrl: string;
}

/** Throws a UsageError that says what is wrong with the request. */
export async function issueSignInLink(
  { minutes, ...person }: LinkRequest,
  ports: LinkPorts,
  now: Date,
): Promise<IssuedLink> {
  const fault = personFault(person) ?? minutesFault(minutes);
  if (fault !== null) throw new UsageError(fault);
  const { secret, hash: linkHash } = ports.secrets.make(linkPrefix);
  const expiresAt = new Date(now.getTime() + minutes * minuteMs);
  const linkId = await ports.links.issue({ ...person, linkHash, issuedAt: now, expiresAt });
  const { name, role, crawlers } = person;
  const url = new URL(`/sign-in/${secret}`, ports.webUrl).href;
  return { linkId, name, role, crawlers, url, expiresAt };
}

function personFault({ name, role, crawlers }: Person): string | null {
  if (!personName.test(name) || takenNames.has(name.toLowerCase())) {
    return `"${name.slice(0, 80)}": a name is up to 63 letters, digits and . _ @ + -, and neither coordinator nor anybody`;
  }
  if (role === "partner" && crawlers.length === 0)
    return "a partner signs in to crawlers of its own: name them";
  if (role !== "partner" && crawlers.length > 0)
    return `${role === "staff" ? "staff see" : "operators control"} every crawler: name them for a partner only`;
  return crawlers.length > mostCrawlersOfPartner ? `more than ${mostCrawlersOfPartner} crawlers` : null;
}

function minutesFault(minutes: number): string | null {
  const { least, most } = linkMinutes;
  return minutes >= least && minutes <= most ? null : `${minutes} minutes: from ${least} to ${most}`;
}

export interface BegunSession {
  readonly secret: string;
  readonly session: Session;
}

/** Returns null if the link is not, or no longer, valid. */
export async function redeemLink(
  link: string,
  ports: { readonly links: Pick<SignInLinkStore, "redeem">; readonly secrets: Secrets },
  { whence, now }: { readonly whence: Whence; readonly now: Date },
): Promise<BegunSession | null> {
  const { secret, hash: sessionHash } = ports.secrets.make(sessionPrefix);
  const endsAt = new Date(now.getTime() + sessionMs);
  const begun = { ...whence, sessionHash, endsAt };
  const session = await ports.links.redeem(ports.secrets.hash(link), begun, now);
  return session && { secret, session };
}

/** The audit log's entry: the person, without the secret. */
export function linkIssued({ linkId, name, role, crawlers, expiresAt }: IssuedLink): Change {
  const of = crawlers.length > 0 ? ` of ${crawlers.join(", ")}` : "";
  return {
    action: "sign-in-link-issued",
    target: name,
    words: `A sign-in link for ${name} (${role}${of}), valid until ${expiresAt.toISOString()}.`,
    after: { linkId, name, role, crawlers, expiresAt },
  };
}
