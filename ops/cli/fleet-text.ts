/** The fleet as tables that fit 80 columns each: today's work, what came of it, who they are. */
import type { FleetEntry } from "#coordinator/fleet/fleet-ports";
import { standingWords } from "#coordinator/trust/judge-crawler";
import { stateStyle } from "./colour.ts";
import { identitiesText } from "./fleet/identities-text.ts";
import { formatTable } from "./output.ts";
import { printable } from "./printable.ts";

export function fleetText(fleet: readonly FleetEntry[]): string {
  if (fleet.length === 0) return "there is no crawler yet: nearcrawl fleet invite --name NAME";
  const table = formatTable(
    [
      { title: "crawler" },
      { title: "state", style: stateStyle },
      { title: "subnets", align: "right" },
      { title: "leases", align: "right" },
      { title: "pages today", align: "right" },
      { title: "of", align: "right" },
      { title: "bytes today", align: "right" },
      { title: "of", align: "right" },
      { title: "" },
    ],
    fleet.map((entry) => [
      entry.name,
      entry.revoked ? "revoked" : entry.state,
      String(entry.subnets),
      String(entry.openLeases),
      String(entry.pagesToday),
      String(entry.pagesPerDay),
      bytesText(entry.bytesToday),
      bytesText(entry.bytesPerDay),
      remarkOn(entry),
    ]),
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
  return `${table}\n\n${standing}\n${identities === "" ? "" : `\n${identities}\n\n`}${fleet.length} crawlers, ${fleet.filter(({ state }) => state !== "offline").length} connected`;
}

function remarkOn({ draining, subnets, openLeases, joiningSince, state, offlineReason }: FleetEntry): string {
  if (draining !== null) {
    const done = subnets === 0 && openLeases === 0;
    if (done) return draining.subnets === 0 ? "drained" : `drained of all its ${draining.subnets} subnets`;
    const handed = Math.max(0, draining.subnets - subnets);
    return `hands over: ${handed} of ${draining.subnets} subnets done, ${openLeases} leases open`;
  }
  if (state === "offline") return offlineReason === null ? "never seen" : printable(offlineReason);
  return joiningSince === null ? "" : "joins: is given what is nearest to it";
}

/** What today's results took on the wire, and which part of the pages' bytes that is. */
function shippedText({ shippedBytesToday, bodyBytesToday }: FleetEntry): string {
  if (shippedBytesToday === 0) return "0 B";
  const times = bodyBytesToday / shippedBytesToday;
  return times < 1 ? bytesText(shippedBytesToday) : `${bytesText(shippedBytesToday)} = 1/${times.toFixed(1)}`;
}

const units = ["B", "kB", "MB", "GB", "TB", "PB"] as const;

/** Three figures: 999 B, 1.23 MB, 45.6 GB. */
function bytesText(bytes: number): string {
  let [value, unit] = [bytes, 0];
  while (value >= 999.5 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${Number(value.toPrecision(3))} ${units[unit]}`;
}
