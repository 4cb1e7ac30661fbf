/** Which source wins (rir-import/tree/precedence.ts), how holders are joined, and how unusual ranges are handled. */
import { describe, expect, it } from "vitest";
import { stateOf } from "../source-folder.ts";

const object = (range: string, more: Readonly<Record<string, string>> = {}) =>
  `${range.includes(":") ? "inet6num" : "inetnum"}: ${range}\n${Object.entries(more)
    .map(([name, value]) => `${name}: ${value}\n`)
    .join("")}${more.source ? "" : "source: RIPE\n"}\n`;
const statistics = (registry: string, ...lines: readonly string[]) =>
  `2|${registry}|20260101|${lines.length}||20260101|+0000\n${lines.map((line) => `${registry}|${line}\n`).join("")}`;
const iana = (...records: readonly (readonly [prefix: string, whois: string])[]) =>
  `<registry xmlns="http://www.iana.org/assignments" id="ipv4-address-space">${records
    .map(
      ([prefix, whois]) =>
        `<record><prefix>${prefix}</prefix><designation>x</designation><whois>whois.${whois}.net</whois><status>ALLOCATED</status></record>`,
    )
    .join("")}</registry>`;

describe("the same range in several sources is one subnet", () => {
  it("with the WHOIS object's fields, and missing ones from the statistics", async () => {
    const { subnets, state } = await stateOf({
      "delegated-ripencc": statistics("ripencc", "NL|ipv4|45.10.0.0|65536|20100101|allocated|abc-1"),
      "ripe.db": object("45.10.0.0 - 45.10.255.255", { netname: "EX-NET" }),
    });

    expect(subnets).toEqual([
      {
        range: "45.10.0.0/16",
        parent: null,
        holder: "ripencc:opaque-id:abc-1",
        country: "NL",
        registry: "ripencc",
        name: "EX-NET",
      },
    ]);
    expect(state.summary.duplicates).toBe(1);
  });

  it("the registry whose statistics cover the range takes precedence, whichever is read first", async () => {
    const files = {
      "arin.db": object("45.10.0.0/16", { netname: "OLD", descr: "Former Example Company", source: "ARIN" }),
      "ripe.db": object("45.10.0.0/16", { netname: "NEW", descr: "Present Example Company" }),
    };

    const byRipe = await stateOf({
      ...files,
      s: statistics("ripencc", "NL|ipv4|45.0.0.0|16777216|20100101|allocated"),
    });
    const byArin = await stateOf({
      ...files,
      s: statistics("arin", "US|ipv4|45.0.0.0|16777216|20100101|allocated"),
    });

    expect(byRipe.subnets.at(-1)).toMatchObject({ name: "NEW", registry: "ripencc" });
    expect(byArin.subnets.at(-1)).toMatchObject({ name: "OLD", registry: "arin" });
  });

  it("without statistics that cover it, IANA's registry names the responsible one", async () => {
    const { subnets } = await stateOf({
      "arin.db": object("45.10.0.0/16", { netname: "OLD", source: "ARIN" }),
      "ripe.db": object("45.10.0.0/16", { netname: "NEW" }),
      "iana.xml": iana(["045/8", "ripe"]),
    });

    expect(subnets).toMatchObject([
      { range: "45.0.0.0/8", registry: "iana", parent: null },
      { range: "45.10.0.0/16", name: "NEW", parent: "45.0.0.0/8" },
    ]);
  });

  it("of two objects of one registry the first that was read counts", async () => {
    const { subnets } = await stateOf({
      "ripe.db":
        object("45.10.0.0/16", { netname: "FIRST" }) +
        object("45.10.0.0/16", { netname: "SECOND", country: "NL" }),
    });

    expect(subnets).toMatchObject([{ name: "FIRST", country: "NL" }]);
  });

  it("an object without a known source belongs to the registry that is responsible", async () => {
    const { subnets } = await stateOf({
      "x.db": object("45.10.0.0/16", { source: "TEST" }),
      "iana.xml": iana(["045/8", "apnic"]),
    });

    expect(subnets.at(-1)).toMatchObject({ range: "45.10.0.0/16", registry: "apnic" });
  });
});

describe("holders", () => {
  it("are joined by the organisation's handle, in whatever file and order it comes", async () => {
    const { state } = await stateOf({
      "inetnum.db":
        object("45.10.0.0/16", { org: "ORG-EX1-RIPE" }) + object("2a02:f00::/32", { org: "org-ex1-ripe" }),
      "organisation.db":
        "organisation: ORG-EX1-RIPE\norg-name: Example Holdings\ncountry: NL\nsource: RIPE\n",
    });

    expect([...state.holders.all()]).toEqual([
      {
        key: "ripencc:org-handle:ORG-EX1-RIPE",
        name: "Example Holdings",
        handle: "ORG-EX1-RIPE",
        registry: "ripencc",
      },
    ]);
  });

  it("lend their country to ranges that state none (ARIN's nets)", async () => {
    const { subnets } = await stateOf({
      "arin.txt":
        "NetHandle: NET-1\nOrgID: EX-1\nNetName: A\nNetRange: 45.10.0.0 - 45.10.0.255\n\nOrgID: EX-1\nOrgName: Example\nCountry: US\n",
    });

    expect(subnets).toMatchObject([{ country: "US", holder: "arin:org-handle:EX-1" }]);
  });

  it("of one name in two registries are one; a maintainer never gives a name", async () => {
    const { subnets } = await stateOf({
      a: object("45.10.0.0/16", { descr: "Exemplary Networks, Inc.", "mnt-by": "EX-MNT" }),
      b: object("45.11.0.0/16", { owner: "EXEMPLARY NETWORKS INC", source: "LACNIC" }),
      c: object("45.12.0.0/16", { "mnt-by": "EX-MNT" }),
    });

    expect(subnets.map(({ holder }) => holder)).toEqual([
      "name:exemplary networks",
      "name:exemplary networks",
      null,
    ]);
  });

  it("by opaque-id are those of one file only", async () => {
    const { subnets } = await stateOf({
      one: statistics(
        "afrinic",
        "ZA|ipv4|102.128.0.0|256|20100101|allocated|F1",
        "ZA|ipv4|102.129.0.0|256|20100101|allocated|F1",
      ),
      two: statistics("afrinic", "KE|ipv4|102.130.0.0|256|20100101|allocated|F1"),
      three: statistics("apnic", "JP|ipv4|1.0.16.0|256|20100101|allocated|F1"),
    });

    expect(subnets.map(({ holder }) => holder)).toEqual([
      "apnic:opaque-id:F1",
      "afrinic:opaque-id:F1",
      "afrinic:opaque-id:F1",
      "afrinic:opaque-id:F1@2",
    ]);
  });
});

describe("dropped: neither subnet nor holder", () => {
  it.each([
    ["0.0.0.0 - 255.255.255.255", "EX"],
    ["45.10.0.0/16", "ERX-NETBLOCK"],
    ["192.168.4.0 - 192.168.4.9", "HOME"],
    ["2001:db8:1::/48", "DOCUMENTATION"],
    ["224.0.0.0/8", "MULTICAST"],
  ])("%s %s", async (range, netname) => {
    const { subnets, state } = await stateOf({
      a: object(range, { netname, descr: "Example Placeholders" }),
    });

    expect(subnets).toEqual([]);
    expect([...state.holders.all()]).toEqual([]);
  });

  it("but a range that only touches a special-purpose block stays", async () => {
    const { subnets } = await stateOf({ a: object("203.0.0.0/16") + object("192.167.0.0 - 192.168.0.255") });

    expect(subnets.map(({ range }) => range)).toEqual(["192.167.0.0 - 192.168.0.255", "203.0.0.0/16"]);
  });
});

describe("the hierarchy", () => {
  it("keeps both of two crossing ranges and lists them", async () => {
    const { subnets, state } = await stateOf({
      apnic:
        object("202.98.0.0/16") +
        object("202.98.116.0 - 202.98.119.255") +
        object("202.98.119.0 - 202.98.120.255"),
    });

    expect(subnets.map(({ range, parent }) => [range, parent])).toEqual([
      ["202.98.0.0/16", null],
      ["202.98.116.0/22", "202.98.0.0/16"],
      ["202.98.119.0 - 202.98.120.255", "202.98.0.0/16"],
    ]);
    expect(state.summary).toMatchObject({
      crossings: 1,
      crossingSamples: [{ earlier: "202.98.116.0/22", later: "202.98.119.0 - 202.98.120.255" }],
    });
  });

  it("is as deep as the registries make it", async () => {
    const nested = Array.from({ length: 25 }, (_, depth) => object(`45.0.0.0/${8 + depth}`)).join("");

    const { state } = await stateOf({ a: nested });

    expect(state.summary).toMatchObject({ subnets: 25, deepest: 25 });
  });

  it("numbers parents before their children, through both families", async () => {
    const { state, subnets } = await stateOf({
      a: object("45.1.2.0/24") + object("2a02:f00::/32") + object("45.1.0.0/16") + object("2a02:f00::/48"),
    });

    expect(subnets.map(({ range, parent }) => [range, parent])).toEqual([
      ["45.1.0.0/16", null],
      ["45.1.2.0/24", "45.1.0.0/16"],
      ["2a02:f00::/32", null],
      ["2a02:f00::/48", "2a02:f00::/32"],
    ]);
    expect(state.summary).toMatchObject({ ipv4Subnets: 2, ipv6Subnets: 2, withoutHolder: 4 });
  });
});
