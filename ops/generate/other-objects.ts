/** Objects that whole-database files hold beside networks and organisations; the importer passes over them. */
import type { RegionalRegistry } from "./address-blocks.ts";
import { rpslSources } from "./handles.ts";
import { townOf } from "./places.ts";
import { attribute } from "./rpsl-attributes.ts";

export interface OtherObject {
  /** Its class. */
  readonly kind: string;
  readonly text: string;
}

const kinds = ["aut-num", "person", "mntner", "route", "as-block"] as const;

export function otherObject(registry: RegionalRegistry, at: number): OtherObject {
  const kind = kinds[at % kinds.length] as (typeof kinds)[number];
  const source = `${attribute("source", rpslSources[registry])}\n`;
  return { kind, text: attribute(kind, keyOf(kind, at)) + restOf(kind, at) + source };
}

function keyOf(kind: (typeof kinds)[number], at: number): string {
  switch (kind) {
    case "aut-num":
      return `AS${37_000 + at}`;
    case "person":
      return `Generated Person ${at}`;
    case "mntner":
      return `GEN${at}-MNT`;
    case "route":
      return `41.${at % 256}.0.0/16`;
    case "as-block":
      return `AS${37_000 + at} - AS${37_001 + at}`;
  }
}

function restOf(kind: (typeof kinds)[number], at: number): string {
  const maintainer = attribute("mnt-by", "GEN-MNT");
  if (kind === "person") return attribute("address", townOf(at)) + maintainer;
  return (kind === "route" ? attribute("origin", `AS${37_000 + at}`) : "") + maintainer;
}
