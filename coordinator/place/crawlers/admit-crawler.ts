/**
 * Authenticates a connecting crawler by its name and its key or an invitation. If the name has an identity, the
 * crawler must also sign this connection's challenge, so a stolen key alone opens nothing. Copies of a whole folder
 * are detected later, by their tickets.
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

/** What a crawler sent, before it is verified. */
export interface Introduction {
  readonly hello: CrawlerHello;
  /** The challenge that this connection was given to sign. */
  readonly challenge: string;
  /** The TLS connection's binding. Null if TLS ends before this coordinator or is not used. */
  readonly tlsBinding: string | null;
  readonly remoteAddress: string;
}

export interface Admitted {
  readonly crawlerId: CrawlerId;
  /** The identity bound to the name. Null if it has none and signs nothing. */
  readonly publicKey: string | null;
  /** Messages sent right after the welcome, such as the key issued for an invitation. */
  readonly first: readonly CoordinatorMessage[];
}

interface AdmissionPorts {
  readonly crawlers: Pick<CrawlerStore, "authenticate">;
  readonly identities: Pick<IdentityStore, "noteKeyUse" | "redeem" | "readmitted" | "issueKey">;
  readonly incidents: IncidentNotes;
  readonly secrets: Secrets;
}

/** Prefix of invitation secrets. No key starts with it. */
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
    // The identity matches a removed crawler, which does not know yet that it was removed.
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

/** Readmits, once and by identity alone, a crawler whose key was lost when the database was restored, with a new key. */
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

/** Returns the public key that signed this connection's hello, or null if none did. */
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

export function isHelloSigned({ hello, challenge }: Introduction, publicKey: string): boolean {
  const { identity, name, spoolId } = hello;
  if (!identity) return false;
  const { instanceId, ticket, signature, binding } = identity;
  const text = helloText({ challenge, name, spoolId, instanceId, ticket, binding });
  return isSignedBy(publicKey, text, signature);
}

/** Checks whether the hello was signed for another TLS connection, that is, relayed. */
function isPassedOn({ hello: { identity }, tlsBinding }: Introduction): boolean {
  return tlsBinding !== null && identity?.binding !== undefined && identity.binding !== tlsBinding;
}

/** Records the misuse only if the key was right. A wrong signature alone is counted where it is refused. */
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

export const shutOut: Refusal = {
  code: "revoked",
  reason: "the operator has shut this crawler out",
  retry: false,
};

const badSignature = (reason: string): Refusal => ({ code: "bad-signature", reason, retry: false });

// A crawler with an identity trades its ticket for the next one, unless its folder proves to be a copy.

interface TicketPorts {
  readonly identities: Pick<IdentityStore, "noteArrival" | "tradeTicket">;
  readonly incidents: IncidentNotes;
  readonly secrets: Secrets;
  /** Reports whether the database was restored from a backup. If omitted, this is not checked. */
  readonly hasGoneBack?: () => Promise<boolean>;
}

interface TicketHolder {
  readonly crawlerId: CrawlerId;
  readonly hello: CrawlerHello;
  readonly remoteAddress: string;
}

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
    // A ticket that a restored database has forgotten is no reason to refuse: the coordinator is about to restart.
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

/** Reports to the operator that two machines share one identity, and refuses this one. */
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

/** Normalises an address, with mapped IPv4 as plain IPv4. Returns null if it is no address. */
function plainAddress(text: string): string | null {
  const address = parseAddress(text);
  return address === null ? null : formatAddress(unmapAddress(address));
}
