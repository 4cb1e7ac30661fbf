/** The reader of bytes against the reader of texts: whatever the fast one takes, the thorough one takes alike. */
import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import { formatRange, type IpRange } from "#core/ip/range";
import { seededRandom } from "#core/random";
import { ipv6Value, RangeReader } from "#rir-import/formats/range-reader";
import { readRegistryRange } from "#rir-import/formats/registry-range";

const reader = new RangeReader();

function fast(text: string): IpRange | null {
  const bytes = Buffer.from(`x${text}y`, "latin1");
  if (reader.readIpv4(bytes, 1, bytes.length - 1)) return reader.ipv4;
  return reader.readIpv6(bytes, 1, bytes.length - 1) ? reader.ipv6 : null;
}

function slow(text: string): IpRange | null {
  const reading = readRegistryRange(text);
  return "range" in reading ? reading.range : null;
}

describe("ranges from bytes", () => {
  it.each([
    ["193.0.0.0 - 193.0.7.255", "193.0.0.0/21"],
    ["193.0.0.0-193.0.7.254", "193.0.0.0 - 193.0.7.254"],
    [" \t193.0.0.0\t-  193.0.7.255  ", "193.0.0.0/21"],
    ["010.000.00.0 - 010.255.255.255", "10.0.0.0/8"],
    ["200.3.12/22", "200.3.12.0/22"],
    ["041/8", "41.0.0.0/8"],
    ["0/0", "0.0.0.0/0"],
    ["255.255.255.255", "255.255.255.255/32"],
    ["192.0.0.1/31", "192.0.0.0/31"],
    ["2A02:0F00:1::FFFE/48", "2a02:f00:1::/48"],
    ["::/0", "::/0"],
    ["2001:db8::/33", "2001:db8::/33"],
    ["1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8/128"],
    ["1:2:3:4:5:6:7::/112", "1:2:3:4:5:6:7:0/112"],
  ])("%j is taken", (text, range) => {
    const found = fast(text);

    expect(found && formatRange(found)).toBe(range);
  });

  it.each([
    "",
    "-",
    "/",
    "1",
    "1.2.3",
    "1.2.3.4.5",
    "1.2.3.256",
    "0001.2.3.4",
    "1.2.3.4 - 1.2.3.3",
    "1.2.3 - 1.2.3.4",
    "1.2.3.4 - 1.2.3.5 6",
    "1.2.3.4/33",
    "1.2.3.4/",
    "1.2.3.4 5",
    "1:2",
    ":1::",
    "1:::2",
    "1::2::3",
    "1:2:3:4:5:6:7:8:9",
    "1:2:3:4:5:6:7:8::",
    "12345::",
    "2001:db8::/129",
    "2001:db8::/",
    "g::",
    "::1 x",
    "1:2:3:4:5:6:7:",
  ])("%j is left to others", (text) => {
    expect(fast(text)).toBeNull();
  });

  it("are the same as from text on a hundred thousand random spellings (seed 31)", () => {
    const random = seededRandom(31);
    const below = (limit: number) => Math.floor(random() * limit);
    let taken = 0;
    for (let round = 0; round < 100_000; round++) {
      const text = mangled(spelling(below), below);
      const [byBytes, byText] = [fast(text), slow(text)];
      if (byBytes === null) continue;
      taken++;
      if (!isDeepStrictEqual(byBytes, byText)) expect([text, byBytes]).toEqual([text, byText]);
    }
    expect(taken).toBeGreaterThan(40_000);
  });

  it("miss none of the spellings that dumps are full of (seed 32)", () => {
    const random = seededRandom(32);
    const below = (limit: number) => Math.floor(random() * limit);
    for (let round = 0; round < 20_000; round++) {
      const text = spelling(below);
      const byText = slow(text);
      expect([text, fast(text)]).toEqual([text, byText]);
    }
  });

  it("give words that are the big integers", () => {
    const bytes = Buffer.from("2a02:f00:2::/47");

    expect(reader.readIpv6(bytes, 0, bytes.length)).toBe(true);
    expect([ipv6Value(reader.words, 0), ipv6Value(reader.words, 4)]).toEqual([
      reader.ipv6.first,
      reader.ipv6.last,
    ]);
    expect([...reader.words.subarray(4)]).toEqual([0x2a020f00, 0x0003ffff, 0xffffffff, 0xffffffff]);
  });
});

type Below = (limit: number) => number;

function spelling(below: Below): string {
  const octets = () => Array.from({ length: 4 }, () => String(below(256)).padStart(below(4), "0")).join(".");
  const blank = () => ["", " ", "  ", "\t"][below(4)];
  const groups = () => Array.from({ length: 1 + below(7) }, () => below(0x10000).toString(16)).join(":");
  switch (below(5)) {
    case 0:
      return `${blank()}${octets()}${blank()}-${blank()}${octets()}${blank()}`;
    case 1:
      return `${octets()
        .split(".")
        .slice(0, 1 + below(4))
        .join(".")}/${below(36)}`;
    case 2:
      return `${blank()}${octets()}${blank()}`;
    case 3:
      return `${groups().toUpperCase()}::/${below(131)}`;
    default:
      return `${blank()}${groups()}::${below(2) === 0 ? "" : groups()}${blank()}`;
  }
}

/** One byte added, changed or left out, half of the time. */
function mangled(text: string, below: Below): string {
  if (below(2) === 0) return text;
  const at = below(text.length + 1);
  const letter = ".:/- \t0f9#x\0"[below(12)];
  return `${text.slice(0, at)}${below(3) === 0 ? "" : letter}${text.slice(at + below(2))}`;
}
