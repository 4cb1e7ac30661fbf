/**
 * What the registry files of a world share: the date they are of, handles of holders, when a range was
 * registered. All from the world alone, so that the same world writes the same bytes.
 */
import type { World, WorldSubnet } from "./model.ts";
import type { RegionalRegistry } from "./places.ts";
import { hashText } from "./seeded-random.ts";

/** The day that the files say they are of. */
export const fileDay = "2026-10-01";

const handleEndings: Readonly<Record<RegionalRegistry, string>> = {
  afrinic: "AFRINIC",
  apnic: "AP",
  arin: "ARIN",
  lacnic: "LACNIC",
  ripencc: "RIPE",
};

/** `ORG-AB12-RIPE`: letters from the name, the holder's position as the number. */
export function organisationHandle(world: World, holder: number, registry: RegionalRegistry): string {
  return `ORG-${initials(world, holder)}${holder + 1}-${handleEndings[registry]}`;
}

/** LACNIC's owner id: `BR-AB12-LACNIC`. */
export function lacnicHandle(world: World, holder: number): string {
  return `${world.holders[holder]?.country ?? "UY"}-${initials(world, holder)}${holder + 1}-LACNIC`;
}

/** ARIN's OrgID: no prefix, at most fourteen characters or so. */
export function arinHandle(world: World, holder: number): string {
  return `${initials(world, holder)}-${holder + 1}`;
}

/** Which records of one file have one holder; means nothing outside that file. */
export function opaqueId(world: World, holder: number): string {
  return (
    hashText(world.seed ^ 0x6f70, `holder ${holder}`)
      .toString(16)
      .padStart(8, "0")
      .toUpperCase() + holder.toString(36).toUpperCase()
  );
}

/** ISO day on which a range was registered: between 1996 and 2025. */
export function registeredOn(world: World, subnet: WorldSubnet): string {
  const draw = hashText(world.seed, subnet.name);
  const day = 1 + ((draw >>> 8) % 28);
  const month = 1 + ((draw >>> 16) % 12);
  return `${1996 + (draw % 30)}-${String(month).padStart(2, "0")}-${String(day).padStart(2, "0")}`;
}

export function compactDay(isoDay: string): string {
  return isoDay.replaceAll("-", "");
}

export function holderName(world: World, subnet: WorldSubnet): string {
  return subnet.holder === null ? "" : (world.holders[subnet.holder]?.name ?? "");
}

/** The subnets that this registry's own files hold: all but the blocks that IANA lists. */
export function subnetsOf(world: World, registry: RegionalRegistry): WorldSubnet[] {
  return world.subnets.filter((subnet) => subnet.registry === registry && subnet.kind !== "iana");
}

function initials(world: World, holder: number): string {
  const name = world.holders[holder]?.name ?? "";
  const letters = name
    .replace(/[^A-Za-z ]/g, " ")
    .trim()
    .split(/\s+/)
    .map((word) => word.charAt(0))
    .join("");
  return `${letters.toUpperCase()}XX`.slice(0, 3);
}
