/** Who the crawlers are, as people read it below the fleet's figures: identity, address, last absence, last words. */
import type { FleetEntry } from "#coordinator/fleet/fleet-list-reads";
import { formatTable } from "../output.ts";
import { printable } from "../printable.ts";

/** Characters of a public key that are enough to tell crawlers apart, and to compare with what a partner reads out. */
const fingerprintLength = 12;

/** Empty when no crawler has ever connected. */
export function identitiesText(fleet: readonly FleetEntry[]): string {
  const seen = fleet.filter(({ identity }) => identity.publicKey !== null || identity.seenAddress !== null);
  if (seen.length === 0) return "";
  return formatTable(
    [
      { title: "crawler" },
      { title: "identity" },
      { title: "key since" },
      { title: "seen at" },
      { title: "last away (UTC)" },
      { title: "last words (UTC)" },
      { title: "" },
    ],
    seen.map(({ name, identity }) => [
      name,
      identity.publicKey?.slice(0, fingerprintLength) ?? "none",
      identity.keySince?.toISOString().slice(0, 10) ?? "none",
      addressText(identity),
      eventText(identity.lastAway && { at: identity.lastAway.since, reason: identity.lastAway.reason }),
      eventText(identity.lastEnd),
      remarks(name, identity),
    ]),
  );
}

function addressText({ seenAddress, addressBefore, addressChangedAt }: FleetEntry["identity"]): string {
  if (seenAddress === null) return "never";
  if (addressBefore === null || addressChangedAt === null) return seenAddress;
  return `${seenAddress} (${addressBefore} until ${addressChangedAt.toISOString().slice(0, 10)})`;
}

function eventText(event: { readonly at: Date; readonly reason: string } | null): string {
  if (event === null) return "";
  return `${event.at.toISOString().slice(0, 16).replace("T", " ")} ${printable(event.reason, 80)}`;
}

function remarks(name: string, { copiedAt, scopes }: FleetEntry["identity"]): string {
  const measures = scopes.length > 0 && !scopes.includes("crawl") ? ["measures only"] : [];
  const copied = copiedAt === null ? [] : [`ITS FOLDER WAS COPIED: nearcrawl fleet incidents --name ${name}`];
  return [...copied, ...measures].join("; ");
}
