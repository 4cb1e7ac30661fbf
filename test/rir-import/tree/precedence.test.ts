/** Which records make no subnet (by name, description or range), and that the shortcuts decide like the full rules. */
import { describe, expect, it } from "vitest";
import { parseRange } from "#core/ip/range";
import { mayBeSpecialPurpose, specialPurposeOfRange } from "#core/ip/special-purpose";
import { seededRandom } from "#core/random";
import type { HolderReference, NetworkRecord } from "#rir-import/formats/record";
import { reasonToDrop } from "#rir-import/tree/precedence";

function record(name: string, holder: HolderReference | null = null, range = "45.0.0.0/16"): NetworkRecord {
  const parsed = parseRange(range)!;
  return {
    ...{ type: "network", line: 1, source: "whois", registry: "ripencc", country: null },
    ...{ name, holder, range: parsed },
  };
}

const named = (name: string): HolderReference => ({ type: "name", name, registry: null, country: null });

describe("placeholders", () => {
  it.each([
    "NON-RIPE-NCC-MANAGED-ADDRESS-BLOCK",
    "EU-NON-RIPE-NCC-MANAGED-ADDRESS-BLOCK",
    "NON-AFRINIC-MANAGED-ADDRESS-BLOCK",
    "IANA-BLK",
    "IANA-NETBLOCK-7",
    "ERX",
    "ERX-NETBLOCK",
    "RIPE-ERX-141-0-0-0",
    "STUB-103-254SLASH22",
    "stub-1-2-3SLASH24",
    "AFRINIC-NET-TRANSFERRED-20050223",
    "NOT-RIPE-NCC",
    "NOT-APNIC",
    "VARIOUS-REGISTRIES-2",
  ])("the name %s is a placeholder", (name) => {
    expect(reasonToDrop(record(name))).toBe("placeholder");
  });

  it.each([
    "",
    "EX-NET",
    "STUBBORN-NET",
    "ERXAMPLE",
    "FOREX-ERXA",
    "IANAKI-BLK",
    "NOT-RIPENED",
    "TRANSFERREDX",
  ])("the name %j is a name", (name) => {
    expect(reasonToDrop(record(name))).toBeNull();
  });

  it.each([
    "Transferred to the RIPE region on 2018-01-01T00:00:00Z.",
    "This network has been transferred to AFRINIC",
    "This network range is not allocated to APNIC.",
    "Not managed by the RIPE NCC",
    "various registries",
    "transferred to ripe",
    "Various Registries (Maintained by ARIN)",
  ])("the description %j is a placeholder", (words) => {
    expect(reasonToDrop(record("EX", named(words)))).toBe("placeholder");
  });

  it("but the same words in a handle or about others do not", () => {
    const handle = { type: "handle", handle: "X", registry: null, name: "Transferred to RIPE" } as const;

    expect(reasonToDrop(record("EX", handle))).toBeNull();
    expect(reasonToDrop(record("EX", named("Calls transferred to ripened fruit traders")))).toBeNull();
  });

  it.each(["0.0.0.0/0", "128.0.0.0/1", "::/0", "8000::/1"])("%s has no holder", (range) => {
    expect(reasonToDrop(record("EX", null, range))).toBe("placeholder");
  });
});

describe("special-purpose ranges", () => {
  it("are reported as by the full search (seed 12)", () => {
    const random = seededRandom(12);
    const groups = ["2001", "2002", "2a02", "3fff", "fc00", "fe80", "0", "64", "2001:db8", "2001:20", "100"];
    for (let round = 0; round < 5000; round++) {
      const start = groups[Math.floor(random() * groups.length)];
      const text = `${start}:${Math.floor(random() * 0x10000).toString(16)}::/${16 + Math.floor(random() * 113)}`;
      const range = parseRange(text)!;

      const long = specialPurposeOfRange(range) === null ? null : "special-purpose range";
      expect([text, reasonToDrop(record("EX", null, text))]).toEqual([text, long]);
    }
  });

  it("never occur where the short cut excludes them", () => {
    for (let first16 = 0; first16 < 0x10000; first16++) {
      if (mayBeSpecialPurpose(4, first16)) continue;
      const first = first16 * 0x10000;
      expect(specialPurposeOfRange({ family: 4, first, last: first })).toBeNull();
      expect(specialPurposeOfRange({ family: 4, first: first + 0x7101, last: first + 0x7101 })).toBeNull();
    }
    expect([45, 193, 200].map((octet) => mayBeSpecialPurpose(4, octet << 8))).toEqual([false, false, false]);
    expect(mayBeSpecialPurpose(4, (203 << 8) | 0)).toBe(true);
  });
});
