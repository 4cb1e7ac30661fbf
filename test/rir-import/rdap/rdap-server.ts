/** A registry's RDAP server on loopback, bootstrap files that name it, and answers written from RFC 9083. */

import { type IpRange, parseRange } from "#core/ip/range";
import { type RdapBootstrap, readBootstrap } from "#rir-import/formats/rdap-bootstrap";
import { askRegistry, type RdapAnswer } from "#rir-import/rdap/ask-registry";
import { manualClock } from "../download/fetching.ts";
import { answer, type Handler } from "../download/registry-server.ts";

export const bootstrapText = (services: readonly (readonly [readonly string[], readonly string[]])[]) =>
  JSON.stringify({ version: "1.0", publication: "2026-03-01T00:00:00Z", description: "for tests", services });

export const bootstrapFor = (base: string) => ({
  ipv4: readBootstrap("ipv4.json", bootstrapText([[["45.0.0.0/8"], [base]]])),
  ipv6: readBootstrap("ipv6.json", bootstrapText([[["2a00::/12"], [base]]])),
});

/** An "ip network" as section 5.4 describes it; `changes` replace its members. */
export function ipNetwork(changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    rdapConformance: ["rdap_level_0"],
    objectClassName: "ip network",
    handle: "45.10.0.0 - 45.10.3.255",
    parentHandle: "45.0.0.0 - 45.255.255.255",
    startAddress: "45.10.0.0",
    endAddress: "45.10.3.255",
    ipVersion: "v4",
    name: "EXEMPLARY-NET",
    type: "ALLOCATED PA",
    country: "nl",
    status: ["active"],
    events: [
      { eventAction: "registration", eventDate: "2011-02-03T00:00:00Z" },
      { eventAction: "last changed", eventDate: "2025-06-07T08:09:10Z" },
    ],
    port43: "whois.ripe.net",
    entities: [
      entity(
        "EXEMPLARY-MNT",
        ["registrant"],
        [
          ["fn", "EXEMPLARY-MNT"],
          ["kind", "individual"],
        ],
      ),
      entity(
        "TC1-RIPE",
        ["technical"],
        [
          ["fn", "Tess Case"],
          ["kind", "individual"],
        ],
      ),
      entity(
        "ORG-EX1-RIPE",
        ["registrant"],
        [
          ["fn", "Exemplary Networks B.V."],
          ["kind", "org"],
        ],
      ),
    ],
    ...changes,
  };
}

/** Section 5.1, its card a jCard (RFC 7095). */
export function entity(
  handle: string | undefined,
  roles: readonly string[],
  card: readonly (readonly [string, unknown])[],
): Record<string, unknown> {
  const properties = card.map(([name, value]) => [name, {}, "text", value]);
  return {
    objectClassName: "entity",
    ...(handle !== undefined && { handle }),
    roles,
    vcardArray: ["vcard", [["version", {}, "text", "4.0"], ...properties]],
  };
}

export const rdap =
  (value: unknown): Handler =>
  (_request, response) =>
    answer(response, 200, JSON.stringify(value), { "content-type": "application/rdap+json" });

export function ask(
  text: string,
  settings: Partial<Parameters<typeof askRegistry>[0]> & {
    readonly bootstrap: { readonly ipv4: RdapBootstrap; readonly ipv6: RdapBootstrap };
  },
): Promise<RdapAnswer> {
  const http = { userAgent: "Nearcrawl/test", proxy: null, certificates: [], redirects: 3 };
  const signal = new AbortController().signal;
  const range = parseRange(text) as IpRange;
  return askRegistry({ http, signal, clock: manualClock(), timeoutMs: 20_000, ...settings }, range);
}
