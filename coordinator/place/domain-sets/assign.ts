/** An operator assigns domain sets to a crawler: parsed, checked against its partner's, and stored or refused with a reason. */

import type { Refusal } from "#protocol/coordinator-messages";
import type { CrawlerHello } from "#protocol/messages";
import type { ChangedDomainSets, DomainSetStore } from "./domain-set-store.ts";
import { type Layer, layerTexts, nothingInBoth, readLayer } from "./partition.ts";

type GivenDomainSets =
  | { readonly type: "given"; readonly changed: ChangedDomainSets }
  | { readonly type: "refused"; readonly reason: string }
  | { readonly type: "no-crawler" };

export async function giveDomainSets(
  asked: { readonly name: string; readonly sets: readonly string[] },
  store: Pick<DomainSetStore, "of" | "give">,
): Promise<GivenDomainSets> {
  const layer = readLayer(asked.sets);
  if (typeof layer === "string") return { type: "refused", reason: layer };
  const known = await store.of(asked.name);
  if (known === null) return { type: "no-crawler" };
  const reason = nothingInBoth(layer, { layer: kept(known.partner), whose: "what its partner allows" });
  if (reason !== null) return { type: "refused", reason };
  const changed = await store.give(asked.name, layerTexts(layer));
  return changed === null ? { type: "no-crawler" } : { type: "given", changed };
}

/** Words for people and the audit log. */
export function givenWords({ name, operator, partner }: ChangedDomainSets): string {
  const sets = operator.length === 0 ? "hosts of every domain" : `hosts in ${operator.join(" or ")} alone`;
  const narrowed = partner.length === 0 ? "" : `, of those that its partner allows (${partner.join(" or ")})`;
  return `${name} is given ${sets}${narrowed}; what it has in hand it finishes, and hosts that it may not have any more go to others.`;
}

function kept(texts: readonly string[]): Layer {
  const layer = readLayer(texts);
  return typeof layer === "string" ? [] : layer;
}

// Domain sets stated by a crawler's partner. Unreadable ones are refused, since ignoring them would lift the restriction.

export function domainSetFault({ domainSets }: Pick<CrawlerHello, "domainSets">): Refusal | null {
  const layer = readLayer(domainSets ?? []);
  if (typeof layer !== "string") return null;
  const reason = `domainSets in the crawler's settings: ${layer}`.slice(0, 500);
  return { code: "bad-message", reason, retry: false };
}
