/** Objects that whole-database files hold beside networks and organisations; the importer passes over them. */
import type { RegionalRegistry } from "./address-blocks.ts";
import { personHandle, rpslSources } from "./handles.ts";
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
  const source = attribute("source", rpslSources[registry]);
  const person = personHandle(registry, at);
  const named = `${attribute("admin-c", person)}${attribute("mnt-by", "GEN-MNT")}${source}\n`;
  switch (kind) {
    case "aut-num":
      return {
        kind,
        text: `${attribute(kind, `AS${37_000 + at}`)}${attribute("as-name", `GEN-${at}`)}${named}`,
      };
    case "person":
      return {
        kind,
        text: `${attribute(kind, `Generated Person ${at}`)}${attribute("address", townOf(at))}${attribute("nic-hdl", person)}${source}\n`,
      };
    case "mntner":
      return { kind, text: `${attribute(kind, `GEN${at}-MNT`)}${attribute("descr", "Maintainer")}${named}` };
    case "route":
      return {
        kind,
        text: `${attribute(kind, "41.0.0.0/16")}${attribute("origin", `AS${37_000 + at}`)}${named}`,
      };
    case "as-block":
      return {
        kind,
        text: `${attribute(kind, `AS${37_000 + at} - AS${37_001 + at}`)}${attribute("descr", "ASN block")}${named}`,
      };
  }
}
