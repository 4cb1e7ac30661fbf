/** A crawler with an identity arrives: its ticket is traded for the next one, unless its folder turns out a copy. */

import type { CrawlerId } from "#core/ids";
import type { IncidentNotes } from "#core/incidents";
import { formatAddress, parseAddress, unmapAddress } from "#core/ip/address";
import type { CrawlerHello } from "#protocol/messages";
import type { Refusal, Secrets } from "./admit-crawler.ts";
import type { IdentityStore } from "./identity.ts";

export interface TicketPorts {
  readonly identities: Pick<IdentityStore, "noteArrival" | "tradeTicket">;
  readonly incidents: IncidentNotes;
  readonly secrets: Secrets;
}

export interface TicketHolder {
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
  if ("copied" in traded) return { refuse: noteCopy(arrival, traded.copied, { ...ports, now }) };
  await ports.identities.noteArrival({ crawlerId, address, lastEnd: hello.lastEnd ?? null }, now);
  noteMove(arrival, traded, { ...ports, now });
  return { ticket };
}

/** Two machines have one identity, as `evidence` shows: the operator hears of it, and this one is refused. */
export function noteCopy(
  { crawlerId, hello, remoteAddress }: TicketHolder,
  evidence: string,
  { incidents, now }: { readonly incidents: IncidentNotes; readonly now: Date },
): Refusal {
  const words = `the folder of ${hello.name} was copied: ${evidence}. Stop one of the two; if the right one is refused, invite it anew (nearcrawl fleet reinvite ${hello.name})`;
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
