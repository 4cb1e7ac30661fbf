/**
 * Somebody says that he is a crawler: by its name, its key or an invitation, and, where an identity belongs to the
 * name, by a signature over this connection's challenge. What a stolen key opens without the identity: nothing.
 * Copies of a whole folder show later, by their tickets.
 */

import type { Secrets } from "#core/access-types";
import type { CrawlerId } from "#core/ids";
import type { IncidentNotes } from "#core/incidents";
import { formatAddress, parseAddress, unmapAddress } from "#core/ip/address";
import type { CoordinatorMessage, Refusal } from "#protocol/coordinator-messages";
import { helloText, isSignedBy, type KeyScope } from "#protocol/identity";
import type { CrawlerHello } from "#protocol/messages";
import type { CrawlerStore } from "./crawler-store.ts";
import type { KeyHolder, RedemptionFault } from "./identity.ts";
import type { IdentityStore } from "./identity-store.ts";

/** Who came, before it was believed. */
export interface Introduction {
  readonly hello: CrawlerHello;
  /** What this connection was given to sign. */
  readonly challenge: string;
  /** Of its TLS connection; null where TLS ends before this coordinator, or there is none. */
  readonly tlsBinding: string | null;
  readonly remoteAddress: string;
}

export interface Admitted {
  readonly crawlerId: CrawlerId;
  /** Its identity, as it is bound to its name; null: it has none, and signs nothing. */
  readonly publicKey: string | null;
  /** To be sent right after the welcome: the key that an invitation was traded for. */
  readonly first: readonly CoordinatorMessage[];
}

interface AdmissionPorts {
  readonly crawlers: Pick<CrawlerStore, "authenticate">;
  readonly identities: Pick<IdentityStore, "noteKeyUse" | "redeem" | "readmitted" | "issueKey">;
  readonly incidents: IncidentNotes;
  readonly secrets: Secrets;
}

/** What invitations' secrets begin with; no key does. */
export const invitationPrefix = "inv_";

export async function admitCrawler(
  introduction: Introduction,
  ports: AdmissionPorts,
  now: Date,
): Promise<Admitted | { readonly refuse: Refusal }> {
  const { hello } = introduction;
  if (hello.key.startsWith(invitationPrefix)) return await redeem(introduction, ports, now);
  const holder = await ports.crawlers.authenticate(hello.name, ports.secrets.hash(hello.key));
  if (holder === null) return (await readmit(introduction, ports, now)) ?? { refuse: wrongKey };
  const fault = identityFault(introduction, holder);
  if (holder.revoked) {
    // With its identity it is the crawler that was removed, which cannot know that yet, and the operator does.
    if (fault !== null || holder.publicKey === null)
      noteRevokedKey(introduction, holder.crawlerId, ports, now);
    return { refuse: shutOut };
  }
  if (fault !== null) {
    noteMisuse(introduction, holder, { fault, incidents: ports.incidents, now });
    return { refuse: badSignature(fault.words) };
  }
  await ports.identities.noteKeyUse(holder, now);
  const { crawlerId, publicKey } = holder;
  return { crawlerId, publicKey, first: [] };
}

/**
 * After the database went back, a crawler whose key it does not know any more: its identity is enough, once, and it gets
 * another key.
 */
async function readmit(
  introduction: Introduction,
  { identities, secrets }: AdmissionPorts,
  now: Date,
): Promise<Admitted | { readonly refuse: Refusal } | null> {
  const publicKey = provenIdentity(introduction);
  if (publicKey === null) return null;
  const known = await identities.readmitted(introduction.hello.name, publicKey);
  if (known === null) return null;
  if (known.revoked) return { refuse: shutOut };
  const { crawlerId, scopes } = known;
  const { secret: key, hash: keyHash } = secrets.make();
  await identities.issueKey({ crawlerId, keyHash, scopes }, now);
  return withKey({ crawlerId, publicKey }, key, scopes);
}

const withKey = (
  crawler: Pick<Admitted, "crawlerId" | "publicKey">,
  key: string,
  scopes: readonly KeyScope[],
): Admitted => ({
  ...crawler,
  first: [{ type: "coordinator:key", key, scopes: [...scopes], oldKeySeconds: 0 }],
});

/** The public key of whoever has signed the hello, for this connection; null: nobody has. */
function provenIdentity(introduction: Introduction): string | null {
  const publicKey = introduction.hello.identity?.publicKey ?? null;
  if (publicKey === null || isPassedOn(introduction)) return null;
  return isHelloSigned(introduction, publicKey) ? publicKey : null;
}

interface IdentityFault {
  readonly kind: "stolen-key" | "no-identity" | "bad-signature";
  readonly words: string;
}

function identityFault(introduction: Introduction, { publicKey }: KeyHolder): IdentityFault | null {
  const { hello } = introduction;
  const shown = hello.identity;
  if (shown === undefined) {
    if (publicKey === null) return null;
    const words = `${hello.name} has an identity, and this hello shows none: run it from its own folder`;
    return { kind: "no-identity", words };
  }
  if (publicKey !== null && shown.publicKey !== publicKey) {
    const words =
      `this is not the identity that belongs to ${hello.name}: its folder was lost or is another's; the ` +
      "operator can reinvite it (nearcrawl fleet reinvite)";
    return { kind: "stolen-key", words };
  }
  if (isPassedOn(introduction)) {
    const words =
      "the hello was made for another TLS connection: somebody on the way opens TLS, and the invitation's pin was not kept to";
    return { kind: "bad-signature", words };
  }
  if (isHelloSigned(introduction, shown.publicKey)) return null;
  return { kind: "bad-signature", words: "the hello is not signed with its key for this connection" };
}

/** Of whoever holds this key, on this connection. */
export function isHelloSigned({ hello, challenge }: Introduction, publicKey: string): boolean {
  const { identity, name, spoolId } = hello;
  if (!identity) return false;
  const { instanceId, ticket, signature, binding } = identity;
  const text = helloText({ challenge, name, spoolId, instanceId, ticket, binding });
  return isSignedBy(publicKey, text, signature);
}

/** Signed, if at all, for a TLS connection that does not end here. */
function isPassedOn({ hello: { identity }, tlsBinding }: Introduction): boolean {
  return tlsBinding !== null && identity?.binding !== undefined && identity.binding !== tlsBinding;
}

/** The key was right, so whoever holds it should not; a wrong signature alone is counted where it is refused. */
function noteMisuse(
  { hello, remoteAddress }: Introduction,
  { crawlerId }: KeyHolder,
  noted: { readonly fault: IdentityFault; readonly incidents: IncidentNotes; readonly now: Date },
): void {
  const { fault, incidents, now } = noted;
  const words =
    fault.kind === "stolen-key"
      ? `somebody has the key of ${hello.name} and another identity (${hello.identity?.publicKey}): rotate the key, or reinvite it if its folder was lost`
      : `somebody has the key of ${hello.name}: ${fault.words}`;
  incidents.note({ crawlerId, kind: fault.kind, words, remoteAddress, at: now });
}

function noteRevokedKey(
  { hello, remoteAddress }: Introduction,
  crawlerId: CrawlerId | null,
  { incidents }: Pick<AdmissionPorts, "incidents">,
  now: Date,
): void {
  const words =
    crawlerId === null
      ? `as ${hello.name}: an invitation was shown that was withdrawn`
      : `somebody came as ${hello.name} with its key, which opens nothing any more`;
  incidents.note({ crawlerId, kind: "revoked-key", words, remoteAddress, at: now });
}

async function redeem(
  introduction: Introduction,
  { identities, secrets, incidents }: AdmissionPorts,
  now: Date,
): Promise<Admitted | { readonly refuse: Refusal }> {
  const { hello } = introduction;
  const publicKey = provenIdentity(introduction);
  if (publicKey === null)
    return { refuse: badSignature("an invitation is redeemed by a hello that its new identity has signed") };
  const { secret: key, hash: keyHash } = secrets.make();
  const secretHash = secrets.hash(hello.key);
  const redeemed = await identities.redeem({ secretHash, name: hello.name, publicKey, keyHash, now });
  if ("refused" in redeemed) {
    if (redeemed.refused.type === "revoked") noteRevokedKey(introduction, null, { incidents }, now);
    return { refuse: refusalOf(redeemed.refused, hello.name) };
  }
  return withKey({ crawlerId: redeemed.crawlerId, publicKey }, key, redeemed.scopes);
}

function refusalOf(fault: RedemptionFault, name: string): Refusal {
  if (fault.type === "shut-out") return shutOut;
  if (fault.type === "revoked") {
    return { code: "revoked", reason: "this invitation was withdrawn: ask the operator why", retry: false };
  }
  const at = fault.type === "expired" ? ` on ${fault.at.toISOString()}` : "";
  return { code: "wrong-key", reason: `${faultWords(name)[fault.type]}${at}: ${askAnew}`, retry: false };
}

const askAnew = "ask the operator for another invitation";

const faultWords = (name: string) =>
  ({
    unknown: "nobody was invited with this token",
    "other-name": `this invitation is for a crawler of another name than ${name}`,
    used: "this invitation was used already, by another machine or to its end",
    expired: "this invitation has expired",
    "name-taken": `there is a crawler named ${name} already`,
    "identity-taken": "the identity in this folder belongs to another crawler: use a new folder, or",
    gone: `there is no crawler named ${name} any more`,
  }) as const satisfies Record<Exclude<RedemptionFault["type"], "revoked" | "shut-out">, string>;

const wrongKey: Refusal = { code: "wrong-key", reason: "no crawler of that name has this key", retry: false };

/** Of a crawler that its operator has shut out. */
export const shutOut: Refusal = {
  code: "revoked",
  reason: "the operator has shut this crawler out",
  retry: false,
};

const badSignature = (reason: string): Refusal => ({ code: "bad-signature", reason, retry: false });

// A crawler with an identity arrives: its ticket is traded for the next one, unless its folder turns out a copy.

interface TicketPorts {
  readonly identities: Pick<IdentityStore, "noteArrival" | "tradeTicket">;
  readonly incidents: IncidentNotes;
  readonly secrets: Secrets;
  /** Whether the database is another than the coordinator took it for; left out: it is not asked. */
  readonly hasGoneBack?: () => Promise<boolean>;
}

interface TicketHolder {
  readonly crawlerId: CrawlerId;
  readonly hello: CrawlerHello;
  readonly remoteAddress: string;
}

/** The ticket of the welcome; null: it has no identity. */
export async function takeTicket(
  arrival: TicketHolder & { readonly publicKey: string | null },
  ports: TicketPorts,
  now: Date,
): Promise<{ readonly ticket: string | null } | { readonly refuse: Refusal }> {
  const { crawlerId, hello, publicKey } = arrival;
  const address = plainAddress(arrival.remoteAddress);
  const { identity } = hello;
  if (publicKey === null || !identity) {
    await ports.identities.noteArrival({ crawlerId, address, lastEnd: hello.lastEnd ?? null }, now);
    return { ticket: null };
  }
  const { secret: ticket, hash: next } = ports.secrets.make();
  const shown = identity.ticket === null ? null : ports.secrets.hash(identity.ticket);
  const { instanceId } = identity;
  const traded = await ports.identities.tradeTicket({ crawlerId, shown, next, instanceId, address, now });
  if ("copied" in traded) {
    // Nobody is shut out for a ticket that the database has forgotten: the coordinator is about to start over.
    if (await ports.hasGoneBack?.()) return { refuse: startsOver };
    return { refuse: noteCopy(arrival, traded.copied, { ...ports, now }) };
  }
  const { signingKeys } = hello;
  await ports.identities.noteArrival(
    { crawlerId, address, lastEnd: hello.lastEnd ?? null, signingKeys },
    now,
  );
  noteMove(arrival, traded, { ...ports, now });
  return { ticket };
}

const startsOver: Refusal = {
  code: "busy",
  reason: "the database went back to an earlier state, and the coordinator starts over",
  retry: true,
};

/** Two machines have one identity, as `evidence` shows: the operator hears of it, and this one is refused. */
export function noteCopy(
  { crawlerId, hello, remoteAddress }: TicketHolder,
  evidence: string,
  { incidents, now }: { readonly incidents: IncidentNotes; readonly now: Date },
): Refusal {
  const words =
    `the folder of ${hello.name} was copied: ${evidence}. Stop one of the two; if the right one is ` +
    `refused, reinvite it (nearcrawl fleet reinvite ${hello.name})`;
  incidents.note({ crawlerId, kind: "copied-folder", words, remoteAddress, at: now });
  const reason = `two machines have the identity of ${hello.name}: ${evidence}. Stop the other one and ask the operator for a new invitation`;
  return { code: "copied-folder", reason, retry: false };
}

function noteMove(
  { crawlerId, hello, remoteAddress }: TicketHolder,
  { movedFrom, alternates }: { readonly movedFrom: string | null; readonly alternates: boolean },
  { incidents, now }: { readonly incidents: IncidentNotes; readonly now: Date },
): void {
  if (movedFrom === null) return;
  const kind = alternates ? "alternating-address" : "new-address";
  const words = alternates
    ? `${hello.name} goes back and forth between ${movedFrom} and this address, each time as a new process: two machines may share its folder`
    : `${hello.name} came from ${movedFrom} before`;
  incidents.note({ crawlerId, kind, words, remoteAddress, at: now });
}

/** In one form, IPv4 as such; null: not an address. */
function plainAddress(text: string): string | null {
  const address = parseAddress(text);
  return address === null ? null : formatAddress(unmapAddress(address));
}
