/** Bytes become readable text in any encoding, and values that are not UTF-8 are counted. */
import { describe, expect, it } from "vitest";
import { seededRandom } from "#core/random";
import { decodeText, ValueDecoder } from "#rir-import/formats/text-decoding";

const decoded = (...bytes: readonly (number | string)[]) => {
  const buffer = Buffer.concat(
    bytes.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.of(part))),
  );
  return decodeText(buffer.toString("latin1"));
};

describe("bytes", () => {
  it("that are UTF-8 are read as UTF-8", () => {
    expect(decoded("Fundación 日本 🌍")).toBe("Fundación 日本 🌍");
  });

  it("that are not are read one by one as Latin-1, beside valid sequences", () => {
    expect(decoded("Funda", 0xe7, 0xe3, "o Jo\u00e3o")).toBe("Fundação João");
    expect(decoded(0x93, "quoted", 0x94, 0x80)).toBe("“quoted”€");
  });

  it.each([
    ["a sequence that ends early", [0xe2, 0x82], "â‚"],
    ["a lone continuation byte", [0xa9], "©"],
    ["an overlong slash", [0xc0, 0xaf], "À¯"],
    ["an overlong sequence of three", [0xe0, 0x80, 0xaf], "à€¯"],
    ["half a surrogate pair", [0xed, 0xa0, 0xbd], "í\u00a0½"],
    ["more than Unicode has", [0xf4, 0x90, 0x80, 0x80], "ô\ufffd€€"],
    ["no letter in Windows-1252", [0x81], "\ufffd"],
  ] as const)("%s stays visible", (_name, bytes, text) => {
    expect(decoded("a", ...bytes, "b")).toBe(`a${text}b`);
  });

  it("that control a terminal become spaces", () => {
    expect(decoded("a\u0000b\u001b[31mc\u007f")).toBe("a b [31mc");
  });

  it("agree with Node's decoder wherever that finds nothing wrong (seed 8)", () => {
    const random = seededRandom(8);
    for (let round = 0; round < 20_000; round++) {
      const bytes = Buffer.from(
        Array.from({ length: 6 }, () => Math.floor(random() * 256) | (random() < 0.6 ? 0x80 : 0x20)),
      );
      const text = bytes.toString("utf8");
      const isValid = Buffer.from(text, "utf8").equals(bytes);
      const own = new ValueDecoder();
      const raw = own.raw(bytes.toString("latin1"));
      if (isValid) expect(raw).toBe(text);
      expect(own.counts?.latin1Values ?? 0).toBe(isValid ? 0 : 1);
      expect([...raw].length).toBeGreaterThan(0);
    }
  });
});

describe("values", () => {
  const bareOf = (text: string) => new ValueDecoder().bare(Buffer.from(text).toString("latin1"));

  it.each([
    ["  Example Networks \t", "Example Networks"],
    ["RIPE # Filtered", "RIPE"],
    ["C# Developers", "C# Developers"],
    ["# nothing", null],
    ["  ", null],
    ["", null],
    ["a long name of more than sixteen bytes # cut", "a long name of more than sixteen bytes"],
  ])("%j without its comment is %j", (text, bare) => {
    expect(bareOf(text)).toBe(bare);
  });

  it("are bounded", () => {
    expect(bareOf("x".repeat(60_000))).toHaveLength(500);
  });

  it("are counted by their encoding, with the first line", () => {
    const decoder = new ValueDecoder();
    const read = (line: number, bytes: Buffer) => {
      decoder.line = line;
      decoder.bare(bytes.toString("latin1"));
    };

    read(3, Buffer.from("plain"));
    read(5, Buffer.from("ñandú"));
    read(8, Buffer.from([0xf1]));
    read(9, Buffer.from([0xf1]));

    expect(decoder.counts).toEqual({ utf8Values: 1, latin1Values: 2, firstLatin1Line: 8 });
  });
});
