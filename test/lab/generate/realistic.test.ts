/** A generated registry is as misleading as the real ones: its shares, its depths, and the traps in its files. */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { generateRegistry, type RegistryAccount } from "./generate-registry.ts";

const objects = 30_000;
let folder: string;
let account: RegistryAccount;
beforeAll(async () => {
  folder = temporaryFolder("nearcrawl-realistic-");
  account = await generateRegistry({ objects, seed: 7, folder: join(folder, "large"), isPlain: true });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const bytesOf = (file: string) => readFileSync(join(folder, "large", file));
const textOf = (file: string) => bytesOf(file).toString("latin1");

function networksOf(registry: string, kinds = ["inetnum", "inet6num", "net"]): number {
  return account.files
    .filter((file) => file.registry === registry)
    .reduce((sum, { written }) => sum + kinds.reduce((all, kind) => all + (written[kind] ?? 0), 0), 0);
}

describe("a generated registry", () => {
  it("gives the registries their real shares", () => {
    const shares = ["ripencc", "apnic", "arin", "lacnic", "afrinic"].map(
      (registry) => networksOf(registry) / objects,
    );

    expect(shares.map((share) => share.toFixed(2))).toEqual(["0.45", "0.15", "0.30", "0.07", "0.03"]);
    expect(account.state.ipv6Subnets / account.state.subnets).toBeCloseTo(0.12, 1);
  });

  it("nests most ranges three to six deep, and some eleven and more", () => {
    const { depths } = account.makeUp;
    const usual = depths.slice(2, 6).reduce((sum, count) => sum + count, 0);

    expect(usual / account.state.subnets).toBeGreaterThan(0.8);
    expect(depths.slice(10).reduce((sum, count) => sum + count, 0)).toBeGreaterThan(10);
  });

  it.each([1, 2, 3, 4, 5, 6])(
    "is deep and has crossing ranges also when it is small: seed %i",
    async (seed) => {
      const small = await generateRegistry({ objects: 2500, seed, folder: join(folder, `small-${seed}`) });

      expect(small.state.deepest).toBeGreaterThanOrEqual(11);
      expect(small.state.crossings).toBeGreaterThan(0);
    },
  );

  it("has one IPv4 range in seven that is no CIDR block, and single addresses", () => {
    const { ipv4NotCidr, unary } = account.makeUp;

    expect(ipv4NotCidr / account.state.ipv4Subnets).toBeGreaterThan(0.12);
    expect(ipv4NotCidr / account.state.ipv4Subnets).toBeLessThan(0.18);
    expect(unary / account.state.subnets).toBeGreaterThan(0.02);
  });

  it("writes objects of the real size", () => {
    const { textBytes, written } = account.files.find(({ file }) => file === "ripe.db.inetnum")!;

    expect(textBytes / written.inetnum!).toBeGreaterThan(300);
    expect(textBytes / written.inetnum!).toBeLessThan(450);
  });

  it("names organisations that are missing", () => {
    const named = new Set(textOf("ripe.db.inetnum").match(/(?<=^org: +)\S+/gm));
    const known = new Set(textOf("ripe.db.organisation").match(/(?<=^organisation: +)\S+/gm));

    const missing = [...named].filter((handle) => !known.has(handle));
    expect(missing.length).toBeGreaterThan(0);
    expect(missing.length / named.size).toBeLessThan(0.03);
  });

  it("spells one company in several ways", () => {
    const names = textOf("ripe.db.inetnum").match(/(?<=^descr: +)[A-Z][a-z]+x [A-Z][a-z]+.*$/gm) ?? [];
    const spellings = new Map<string, Set<string>>();
    for (const name of names) {
      const company = name.split(" ", 1)[0]!;
      spellings.set(company, (spellings.get(company) ?? new Set()).add(name));
    }

    expect([...spellings.values()].filter((set) => set.size > 1).length).toBeGreaterThan(100);
  });

  it.each([
    ["ripe.db.inetnum", "a continued value", /^descr: .+\n\+ +\S/m],
    ["ripe.db.inetnum", "a comment in a value", /^country: +[A-Z]{2} # /m],
    ["ripe.db.inetnum", "a comment that looks like an object", /^# inetnum: /m],
    [
      "ripe.db.inetnum",
      "a certificate in remarks",
      /^remarks: +-{5}BEGIN CERTIFICATE-{5}\n(?:remarks:)? +[\w+/]{64}\n/m,
    ],
    ["ripe.db.inetnum", "a tab before the value", /^inetnum:\t\d/m],
    ["ripe.db.inetnum", "an attribute in capitals", /^INETNUM: /m],
    ["ripe.db.inetnum", "zeros in front", /^inetnum: +0\d\d\./m],
    ["ripe.db.inetnum", "a CIDR block", /^inetnum: +[\d.]+\/\d+\n/m],
    [
      "ripe.db.inetnum",
      "the whole address space",
      /^inetnum: +0\.0\.0\.0 - 255\.255\.255\.255\nnetname: +IANA-BLK/m,
    ],
    ["ripe.db.inetnum", "a stand-in for other registries", /^netname: +NON-RIPE-NCC-MANAGED-ADDRESS-BLOCK$/m],
    ["ripe.db.inet6num", "host bits", /^inet6num: +[\da-f:]+::1\/\d+\n/m],
    ["ripe.db.inet6num", "capitals", /^inet6num: +2A\d\d:[\dA-F:]+::\/\d+\n/m],
    ["ripe.db.inet6num", "one address", /\/128\n/],
    ["apnic.db.inetnum", "early registrations", /^netname: +APNIC-ERX-/m],
    ["apnic.db.inet6num", "CR LF", /^inet6num: .*\r\nnetname: .*\r\n/m],
    ["afrinic.db", "other classes", /^person: /m],
    ["lacnic.db", "short blocks", /^inetnum: +\d+\.\d+\.\d+\/\d+\n/m],
    ["lacnic.db", "IPv6 under inetnum", /^inetnum: +2800:/m],
    ["lacnic.db", "owners with and without an id", /^owner: .*\nownerid: [^\0]*^owner: .*\nresponsible: /m],
    ["arin_db.xml", "nets of two blocks", /<netBlocks><netBlock>.*<\/netBlock><netBlock>/],
    ["arin_db.xml", "both spellings of the prefix length", /<cidrLength>[^\0]*<cidrLenth>/],
    ["arin_db.xml", "nets of other registries", /<type>RX<\/type>|<type>FX<\/type>/],
    ["arin_db.xml", "an escaped name", /<name>.* R&amp;D &lt;Holdings&gt;<\/name>/],
    [
      "delegated-ripencc-extended-20260101",
      "counts that are no power of two",
      /\|ipv4\|[\d.]+\|(?!(?:1|2|4|8|16|32|64|128|256|512|1024|2048|4096|8192|16384|32768|65536|131072|262144|524288|1048576|2097152|4194304)\|)\d+\|/,
    ],
    [
      "delegated-arin-extended-20260101",
      "reserved and available space",
      /\|available\|\n[^\0]*\|reserved\|\n/,
    ],
  ])("%s: %s", (file, _trap, pattern) => {
    expect(textOf(file)).toMatch(pattern);
  });

  it("is Latin-1 where the registries are, UTF-8 where they are not", () => {
    const isUtf8 = (bytes: Buffer) => !bytes.toString("utf8").includes("\ufffd");

    expect(isUtf8(bytesOf("ripe.db.inetnum"))).toBe(false);
    expect(isUtf8(bytesOf("lacnic.db"))).toBe(false);
    expect(isUtf8(bytesOf("apnic.db.inetnum"))).toBe(true);
    expect(isUtf8(bytesOf("arin_db.xml"))).toBe(true);
  });
});
