/** The fleet as tables that fit 80 columns each: today's work, what came of it, who they are. */

import { type FleetEntry, fleetColumns, roundBytesText, textOf } from "#coordinator/fleet/fleet-entry";
import { standingWords } from "#coordinator/trust/judge-crawler";
import { howMany } from "#core/format";
import { formatTable, printable, stateStyle } from "./output.ts";

export function fleetText(fleet: readonly FleetEntry[]): string {
  if (fleet.length === 0) return "there is no crawler yet: nearcrawl fleet invite --name NAME";
  const shown = fleetColumns.filter(({ command }) => command !== undefined);
  const table = formatTable(
    [
      ...shown.map(({ key, command = "", isNumber }) => ({
        title: command,
        ...(isNumber ? { align: "right" as const } : {}),
        ...(key === "state" ? { style: stateStyle } : {}),
      })),
      { title: "" },
    ],
    fleet.map((entry) => [...shown.map((column) => textOf(column, entry)), remarkOn(entry)]),
  );
  const standing = formatTable(
    [
      { title: "crawler" },
      { title: "shipped today", align: "right" },
      { title: "release" },
      { title: "trust" },
    ],
    fleet.map((entry) => [
      entry.name,
      shippedText(entry),
      printable(entry.release?.version ?? ""),
      standingWords[entry.trust],
    ]),
  );
  const identities = identitiesText(fleet);
  return `${table}\n\n${standing}\n${identities === "" ? "" : `\n${identities}\n\n`}${howMany(fleet.length, "crawler")}, ${fleet.filter(({ state }) => state !== "offline").length} connected`;
}

function remarkOn(entry: FleetEntry): string {
  const { draining, subnets, unmeasured, openLeases, joiningSince, state, offlineReason } = entry;
  if (draining !== null) {
    const done = subnets === 0 && openLeases === 0;
    if (done)
      return draining.subnets === 0 ? "drained" : `drained: all ${draining.subnets} subnets handed over`;
    const handed = Math.max(0, draining.subnets - subnets);
    return `draining: ${handed} of ${draining.subnets} subnets handed over, ${openLeases} leases open`;
  }
  if (state === "offline") return offlineReason === null ? "never seen" : printable(offlineReason);
  const joins = joiningSince === null ? [] : ["joining: being assigned the nearest subnets"];
  return [...joins, ...(unmeasured === 0 ? [] : [`${unmeasured} of its subnets not measured yet`])].join(
    "; ",
  );
}

/** What today's results took on the wire, and which part of the pages' bytes that is. */
function shippedText({ shippedBytesToday, bodyBytesToday }: FleetEntry): string {
  if (shippedBytesToday === 0) return "0 B";
  const times = bodyBytesToday / shippedBytesToday;
  return times < 1
    ? roundBytesText(shippedBytesToday)
    : `${roundBytesText(shippedBytesToday)} = 1/${times.toFixed(1)}`;
}

// Who the crawlers are, as people read it below the fleet's figures: identity, address, last absence, last words.

/** Characters of a public key that are enough to tell crawlers apart, and to compare with what a partner reads out. */
const fingerprintLength = 12;

/** Empty when no crawler has ever connected. */
function identitiesText(fleet: readonly FleetEntry[]): string {
  const seen = fleet.filter(({ identity }) => identity.publicKey !== null || identity.seenAddress !== null);
  if (seen.length === 0) return "";
  return formatTable(
    [
      { title: "crawler" },
      { title: "identity" },
      { title: "key since" },
      { title: "signing key since" },
      { title: "seen at" },
      { title: "last away (UTC)" },
      { title: "last message (UTC)" },
      { title: "" },
    ],
    seen.map(({ name, identity }) => [
      name,
      identity.publicKey?.slice(0, fingerprintLength) ?? "none",
      identity.keySince?.toISOString().slice(0, 10) ?? "none",
      identity.signingKey?.since.toISOString().slice(0, 10) ?? "none",
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
